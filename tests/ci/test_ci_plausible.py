# SPDX-License-Identifier: Apache-2.0
"""What a leg says of itself, and cannot be so: never a pass, never a crash, one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ExitCode
from hil.ci import legs as reading
from hil.ci.artefact import keep
from hil.ci.conclusion import CiVerdict, conclude
from hil.ci.limits import Counting
from hil.ci.plan import write_plan
from hil.store.directory import JOURNAL, RUN_INFO, SUMMARY, VERDICTS
from hil.store.reported import REPORTED
from hil.thresholds import load_all
from tests.ci.ci_rig import a_plan, leave_run, rejudge, write_limits
from tests.make_records import publish_record

Facts = dict[str, Any]


def concluded(folder: Path) -> CiVerdict:
    plan = a_plan()
    counting = Counting(load_all(write_limits(folder)))
    return conclude(plan, folder / "legs", {leg.job: "success" for leg in plan.legs}, counting)


def told(verdict: CiVerdict) -> str:
    assert verdict.exit_code == ExitCode.RIG
    return next(leg.sentence for leg in verdict.legs if leg.name == "virtual")


def planned(boots: object) -> Callable[[Facts], Facts]:
    return lambda info: {"plan": {name: dict.fromkeys(cases, boots) for name, cases in info["plan"].items()}}


def boards(**changes: str) -> Callable[[Facts], Facts]:
    return lambda info: {"boards": [{**board, **changes} for board in info["boards"]]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        *((lambda _, legs=legs: {"legs": legs}, f"legs is {legs}; expected") for legs in (0, -1, 0.5, True)),
        (planned(0), " is 0; expected an integer >= 1"),
        (planned(-1), " is -1; expected an integer >= 1"),
        (boards(kind="physical"), "virtual-1 is physical"),
        (boards(id="b2"), "records of virtual-1 virtual virtual-esp32, "),
        (boards(target="virtual-esp32c3"), "records of virtual-1 virtual virtual-esp32"),
    ],
)
def test_what_cannot_be_is_no_verdict(
    tmp_path: Path, change: Callable[[Facts], Mapping[str, object]], words: str
) -> None:
    """A run.json that contradicts itself, its leg or its records: it was a pass, or an internal error."""
    run = leave_run(tmp_path / "legs" / "virtual")
    assert concluded(tmp_path).exit_code == ExitCode.PASS
    path = run.path / RUN_INFO
    info = json.loads(path.read_text())
    path.write_text(json.dumps({**info, **change(info)}))
    assert words in told(concluded(tmp_path))


def test_a_board_cannot_choose_its_limits(tmp_path: Path) -> None:
    """Records and run.json that agree on physical boards have no virtual limits: they were neutral."""
    slow = publish_record(board="physical-1", latency_ms=500.0)
    run = leave_run(tmp_path / "legs" / "virtual", [slow], target="esp32")
    rejudge(run)
    assert "is physical" in told(concluded(tmp_path))


@pytest.mark.parametrize("name", ["", RUN_INFO, JOURNAL])
def test_a_link_is_not_followed(tmp_path: Path, name: str) -> None:
    """Neither a leg's folder nor a file in it may be a link: it shows what else is on the machine."""
    run = leave_run(tmp_path / "legs" / "virtual")
    path = run.path / name if name else tmp_path / "legs" / "virtual"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert "link" in told(concluded(tmp_path))
    write_plan(a_plan(), tmp_path / "plan.json")
    assert keep(tmp_path / "plan.json", tmp_path / "legs", tmp_path / "kept") == ()
    kept = [one for one in (tmp_path / "kept").rglob("*") if one.name == (name or RUN_INFO)]
    assert kept == []  # nothing of it goes into the artefact


@pytest.mark.parametrize("name", [RUN_INFO, VERDICTS, SUMMARY, REPORTED])
def test_what_is_far_too_large_is_not_read(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """100 MB of JSON or words take the job's memory and minutes; the sentence names file and size."""
    monkeypatch.setattr(reading, "MOST_FILE_BYTES", 100_000)
    run = leave_run(tmp_path / "legs" / "virtual")
    path = run.path / name
    path.write_text((path.read_text() if path.exists() else "") + " " * 100_001)
    assert f"its {name} has 1" in told(concluded(tmp_path))


@pytest.mark.parametrize(
    "text",
    ['{"a":' * 100_000 + "1" + "}" * 100_000, '{"legs": ' + "9" * 5_000 + "}"],
    ids=["nesting", "digits"],
)
@pytest.mark.parametrize("name", [RUN_INFO, VERDICTS, JOURNAL])
def test_what_json_cannot_be_read_is_no_verdict(tmp_path: Path, name: str, text: str) -> None:
    """Nesting beyond any stack, a number of 5,000 digits: one sentence."""
    run = leave_run(tmp_path / "legs" / "virtual")
    (run.path / name).write_text(f"{text}\n")
    assert "cannot be read" in told(concluded(tmp_path))


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999", "1" + "0" * 400])
def test_a_figure_that_is_none_is_no_verdict(tmp_path: Path, value: str) -> None:
    """A sample is a number that the board can have counted."""
    run = leave_run(tmp_path / "legs" / "virtual")
    line = json.loads((run.path / JOURNAL).read_text().splitlines()[0])
    name = sorted(line["columns"])[0]
    line["columns"][name] = ["HERE"] * len(line["columns"][name])
    (run.path / JOURNAL).write_text(json.dumps(line).replace('"HERE"', value) + "\n")
    assert "cannot be read" in told(concluded(tmp_path))
