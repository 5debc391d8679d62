# SPDX-License-Identifier: Apache-2.0
"""A verdict counts where its records come to the same, by limits not loosened unseen; nonsense is none."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ExitCode
from hil.ci import legs as reading
from hil.ci import summary
from hil.ci.acceptance import Acceptance
from hil.ci.artefact import keep
from hil.ci.conclusion import CiVerdict, accept, conclude
from hil.ci.limits import Counting, LimitPlace, limits_at, limits_that_count
from hil.ci.plan import CiPlan, write_plan
from hil.model import BaseCause, NoBase
from hil.store import RunDirectory
from hil.store.directory import JOURNAL, RUN_INFO, SUMMARY, VERDICTS
from hil.store.reported import REPORTED
from hil.thresholds import load_all
from tests.ci.ci_rig import (
    Repository,
    a_plan,
    leave_rack_run,
    leave_run,
    limits_text,
    page_of,
    rejudge,
    write_limits,
)
from tests.ci.comment_rig import leave_comparison
from tests.make_records import RUN_ID, change_info, publish_record

SLOW_MS = 60.0  # the limits are 25 and 40 ms
LOOSER = limits_text().replace("_max_ms: 25", "_max_ms: 500").replace("_max_ms: 40", "_max_ms: 500")
PASS = {"outcome": "pass", "exit_code": 0, "sentence": "All is well.", "series": [], "compared": []}


def counting(folder: Path, head: str = "", base: str = "") -> Counting:
    """Return the limits of head and base, each publish.yaml as these runs have it where nothing is given."""
    head_limits = load_all(write_limits(folder / "head", head))
    return Counting(head_limits, load_all(write_limits(folder / "base", base)))


def concluded(folder: Path, limits: Counting, plan: CiPlan | None = None) -> CiVerdict:
    return conclude(plan or a_plan(), folder / "legs", {}, limits)


def change(run: RunDirectory, **told: object) -> None:
    stored = json.loads(run.verdicts_path.read_text())
    run.verdicts_path.write_text(json.dumps({**stored, **told}))


@pytest.mark.parametrize("told", [PASS, {"outcome": "pass", "exit_code": 0}])
def test_a_forged_pass_beside_records_that_regressed(tmp_path: Path, told: dict[str, object]) -> None:
    """The file says pass, the records break a limit: no verdict, and the sentence says what they come to.

    Control: without an edit, and with the limits of head and merge base the same, a pass counts.
    """
    leave_run(tmp_path / "legs/virtual")
    verdict = concluded(tmp_path, counting(tmp_path))
    assert (verdict.exit_code, verdict.headline, verdict.limits) == (ExitCode.PASS, "PASS: virtual", ())
    shutil.rmtree(tmp_path / "legs/virtual")
    run = leave_run(tmp_path / "legs/virtual", [publish_record(latency_ms=SLOW_MS)])
    change(run, **told)
    verdict = concluded(tmp_path, counting(tmp_path))
    assert verdict.exit_code == ExitCode.RIG
    assert "verdicts.json" in verdict.legs[0].sentence
    assert "pass (exit 0) → regressed (exit 1)" in verdict.legs[0].sentence


def test_limits_that_only_the_run_has_do_not_count(tmp_path: Path) -> None:
    """A run judged by a copy of its own, looser than the head's, is no verdict."""
    run = leave_run(tmp_path / "legs/virtual", [publish_record(latency_ms=SLOW_MS)])
    write_limits(run.path, LOOSER)
    rejudge(run)
    assert json.loads(run.verdicts_path.read_text())["exit_code"] == ExitCode.PASS
    assert concluded(tmp_path, counting(tmp_path)).exit_code == ExitCode.RIG
    assert concluded(tmp_path, Counting()).exit_code == ExitCode.PASS  # where nothing else is known


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ({"suite": "publish and qos=0"}, "'publish and qos=0' instead of 'quick'"),
        ({"legs": 1000}, "1000 legs, and the plan has 1"),
        ({"boards": []}, "names no board"),
        ({"plan": {}}, "1 of 1 cases"),
    ],
)
def test_less_than_the_plan_promised_is_no_pass(tmp_path: Path, damage: dict[str, object], why: str) -> None:
    """Suite, boards, cases and share of alpha are those of the plan, whatever run.json would have."""
    run = leave_run(tmp_path / "legs/virtual")
    change_info(run, **damage)
    leg = concluded(tmp_path, counting(tmp_path)).legs[0]
    assert leg.exit_code == ExitCode.RIG
    assert why in leg.sentence


@pytest.mark.parametrize("cause", ["sources", "identical"])
def test_a_leg_that_was_to_compare_and_did_not(tmp_path: Path, cause: BaseCause) -> None:
    """Without a comparison, and without the reason for none, limits that are kept are not the verdict."""
    leave_run(tmp_path / "legs/virtual")
    record = replace(publish_record(board="physical-1"), kind="physical", target="esp32")
    leave_rack_run(tmp_path / "legs/rack-esp32", [record])
    verdict = concluded(tmp_path, counting(tmp_path), a_plan(["esp32"]))
    assert verdict.exit_code == ExitCode.RIG
    assert "compared nothing" in verdict.legs[1].sentence
    shutil.rmtree(tmp_path / "legs/rack-esp32")
    reason = NoBase(RUN_ID, cause, "the merge base is none to compare with.")
    leave_rack_run(tmp_path / "legs/rack-esp32", [record, reason])
    assert concluded(tmp_path, counting(tmp_path), a_plan(["esp32"])).exit_code == ExitCode.PASS


def test_the_stricter_of_both_limits_counts(tmp_path: Path) -> None:
    """25 → 500 ms with figures of 60 ms: regressed by the merge base's limit; both are named.

    Summary and comment list what was loosened. With an owner's word it passes, and stays named.
    """
    run = leave_run(tmp_path / "legs/virtual", [publish_record(latency_ms=SLOW_MS)])
    write_limits(run.path, LOOSER)
    rejudge(run)
    verdict = concluded(tmp_path, counting(tmp_path, head=LOOSER))
    assert (verdict.exit_code, verdict.headline) == (ExitCode.FIRMWARE, "REGRESSED: virtual")
    assert verdict.legs[0].stricter
    assert any("max 25000 → max 500000" in text for text in verdict.loosened)
    page = page_of(a_plan(), verdict, tmp_path / "legs")
    assert page.startswith("### ✗ REGRESSED")
    for text in (summary.render(a_plan(), verdict, {}), page):
        assert "max 25000 → max 500000" in text.partition("What this change loosens")[2]
    assert verdict.acceptable
    accepted = accept(verdict, Acceptance("owner", "a slower radio", "2026-11-20T01:20:00Z"))
    assert (accepted.exit_code, accepted.conclusion) == (ExitCode.PASS, "neutral")
    assert accepted.loosened


def _without(section: str) -> str:
    """Return the limits without one of their lists."""
    lines, kept, inside = limits_text().splitlines(keepends=True), [], False
    for line in lines:
        if not line.startswith((" ", "-", "#", "\n")):
            inside = line.startswith(f"{section}:")
        if not inside:
            kept.append(line)
    return "".join(kept)


NO_P95 = re.sub(
    r"abs_max_ms: 25\n(.*\n)+?.* since: .*\n.* expires: .*\n",
    "abs_max_ms: none\n  why: a test\n",
    limits_text(),
    count=1,
)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (_without("compare"), "compared → not compared"),
        (_without("limits"), "→ no limit"),
        (NO_P95, "max 25000 → no limit"),
    ],
)
def test_each_way_to_loosen_is_named(tmp_path: Path, head: str, said: str) -> None:
    """A rule that is gone, with the line that says it; tolerance and policy: test_ci_loosened.py."""
    assert head != limits_text()
    loosened = [one.text for one in counting(tmp_path, head=head).changes if one.loosens]
    assert any(said in text and text.startswith("thresholds/publish.yaml:") for text in loosened), loosened


def test_a_stricter_limit_is_no_loosened_one(tmp_path: Path) -> None:
    """25 → 20 ms is listed, and needs nobody; a metric that is defined otherwise may be looser."""
    stricter = limits_text().replace("abs_max_ms: 25", "abs_max_ms: 20")
    (one,) = counting(tmp_path, head=stricter).changes
    assert not one.loosens
    assert "max 25000 → max 20000" in one.text
    moved = limits_text().replace("of: done_us - planned_us", "of: done_us - sent_us")
    changes = counting(tmp_path / "moved", head=moved).changes
    assert len(changes) == 4  # the statistics of one entry
    assert all(each.loosens and "is defined otherwise (terms)" in each.text for each in changes)


@pytest.mark.slow
def test_rules_of_comparison_that_are_gone_still_count(tmp_path: Path) -> None:
    """`compare:` emptied beside boots that are 18 % slower: regressed by the merge base's rules."""
    path = leave_comparison(tmp_path / "legs", effect=0.18)
    run = RunDirectory.open(path)
    emptied = _without("compare")
    write_limits(path, emptied)
    rejudge(run)
    assert json.loads(run.verdicts_path.read_text())["exit_code"] != ExitCode.FIRMWARE
    leave_run(tmp_path / "legs/virtual")
    verdict = concluded(tmp_path, counting(tmp_path, head=emptied), a_plan(compare=True))
    assert (verdict.exit_code, verdict.headline) == (ExitCode.FIRMWARE, "REGRESSED: compare")


def test_the_limits_of_a_commit(tmp_path: Path) -> None:
    """They are read from git, whatever lies in the work tree; a commit that git lacks is said."""
    repository = Repository(tmp_path / "repository")
    base = repository.commit({"thresholds/publish.yaml": limits_text()})
    repository.commit({"thresholds/publish.yaml": LOOSER})
    limits = limits_that_count(repository.path / "thresholds", repository.path, base)
    assert [one for one in limits.changes if one.loosens]
    assert (
        limits_at(repository.path, base, LimitPlace())["publish"].limits
        != limits_at(repository.path, "HEAD", LimitPlace())["publish"].limits
    )
    lost = limits_that_count(repository.path / "thresholds", repository.path, "d" * 40)
    (one,) = lost.changes
    assert one.loosens
    assert "the limits of dddddddddddd" in one.text


Facts = dict[str, Any]


def as_measured(folder: Path) -> CiVerdict:
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
    assert as_measured(tmp_path).exit_code == ExitCode.PASS
    path = run.path / RUN_INFO
    info = json.loads(path.read_text())
    path.write_text(json.dumps({**info, **change(info)}))
    assert words in told(as_measured(tmp_path))


def test_a_board_cannot_choose_its_limits(tmp_path: Path) -> None:
    """Records and run.json that agree on physical boards have no virtual limits: they were neutral."""
    slow = publish_record(board="physical-1", latency_ms=500.0)
    run = leave_run(tmp_path / "legs" / "virtual", [slow], target="esp32")
    rejudge(run)
    assert "is physical" in told(as_measured(tmp_path))


@pytest.mark.parametrize("name", ["", RUN_INFO, JOURNAL])
def test_a_link_is_not_followed(tmp_path: Path, name: str) -> None:
    """Neither a leg's folder nor a file in it may be a link: it shows what else is on the machine."""
    run = leave_run(tmp_path / "legs" / "virtual")
    path = run.path / name if name else tmp_path / "legs" / "virtual"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert "link" in told(as_measured(tmp_path))
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
    assert f"its {name} has 1" in told(as_measured(tmp_path))


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
    assert "cannot be read" in told(as_measured(tmp_path))


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999", "1" + "0" * 400])
def test_a_figure_that_is_none_is_no_verdict(tmp_path: Path, value: str) -> None:
    """A sample is a number that the board can have counted."""
    run = leave_run(tmp_path / "legs" / "virtual")
    line = json.loads((run.path / JOURNAL).read_text().splitlines()[0])
    name = sorted(line["columns"])[0]
    line["columns"][name] = ["HERE"] * len(line["columns"][name])
    (run.path / JOURNAL).write_text(json.dumps(line).replace('"HERE"', value) + "\n")
    assert "cannot be read" in told(as_measured(tmp_path))
