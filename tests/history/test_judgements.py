# SPDX-License-Identifier: Apache-2.0
"""judgements.jsonl: how unchanged firmware was judged, kept once a run, merged, named where damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from hil.base.errors import ConfigError
from hil.cli.app import run_command
from hil.history import branch
from hil.history.judgements import (
    GATE,
    JUDGEMENTS_FILE,
    read_judgements,
    to_line,
    unchanged_run_of,
    with_runs,
    write_judgements,
)
from hil.reports.history import append_judgements
from hil.store import read_run
from tests.ci.ci_rig import Repository
from tests.history.test_history_branch_files import clone
from tests.history.unchanged_runs import METRIC, compared, leave_run, unchanged_run
from tests.lab import ROOT

SCHEMA = ROOT / "docs" / "reference" / "schema" / "judgements.schema.json"


def test_a_run_leaves_its_blocking_comparisons(tmp_path: Path) -> None:
    """What decided or stayed undecided on boots is a judgement; advice, no baseline, no boot, and an exact
    figure are none."""
    size = compared(case_id="footprint/", metric="image_bytes", unit="bytes")
    items = [
        compared("regressed", smallest_effect=0.05),
        compared("improved"),
        compared(blocking=False),
        compared("no-baseline"),
        compared(candidate_boots=0),
        size,
    ]
    noise = {"simulated": True, "profile": "typical", "seed": 7, "description": "profile typical"}
    path = leave_run(tmp_path, items, noise=noise, legs=2)
    found = unchanged_run_of(read_run(path))
    assert found is not None
    assert (found.run_id, found.rack, found.noise, found.gate) == (path.name, "lab", "typical", GATE)
    assert found.alpha == pytest.approx(0.005)
    told = [(item.target, item.metric, item.outcome, item.boots) for item in found.judgements]
    assert told == [("esp32", METRIC, "regressed", 16), ("esp32", METRIC, "improved", 16)]
    assert found.judgements[0].smallest_effect == 0.05


def test_another_run_leaves_none(tmp_path: Path) -> None:
    """A pull request's run, and one in which nothing was judged, add no line and make no file."""
    path = tmp_path / "history" / JUDGEMENTS_FILE
    append_judgements(path, read_run(leave_run(tmp_path, [compared("regressed")], unchanged=False)))
    append_judgements(path, read_run(leave_run(tmp_path, [compared(candidate_boots=0)], number=2)))
    assert not path.exists()


def test_a_run_is_kept_once(tmp_path: Path) -> None:
    """Appended again, a run replaces its line."""
    path = tmp_path / "history" / JUDGEMENTS_FILE
    run = read_run(leave_run(tmp_path, [compared(), compared("regressed")]))
    for _ in range(2):
        append_judgements(path, run)
    (kept,) = read_judgements(path)
    assert kept == unchanged_run_of(run)


def test_a_run_without_its_thresholds_is_refused(tmp_path: Path) -> None:
    """Whether a figure is exact its own thresholds tell; where they are lost, the sentence says so."""
    folder = leave_run(tmp_path, [compared()])
    (folder / "thresholds" / "publish.yaml").unlink()
    with pytest.raises(ConfigError, match=r"lacks publish\.yaml"):
        unchanged_run_of(read_run(folder))


def test_a_line_is_as_its_schema_says() -> None:
    """The schema of the docs holds of a line, and not of another key."""
    validator = Draft202012Validator(json.loads(SCHEMA.read_text()))
    line = json.loads(to_line(unchanged_run(1, ("regressed", "undecided"))))
    validator.validate(line)
    assert not validator.is_valid({**line, "colour": "red"})
    assert not validator.is_valid({**line, "judgements": []})


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"schema":1', '"schema":0', "its schema is 0, this program reads 1"),
        ('"alpha":0.01', '"alpha":2', "alpha is 2"),
        ('"outcome":"pass"', '"outcome":"fine"', r"judgements\[0\]\.outcome is 'fine'"),
        ('"gate":', '"gat":', "gate is missing|gat is an unknown key"),
        ("2026-11-20T", "soon", "started_utc is 'soon"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    """File, line and what is wrong, and how to go on."""
    path = tmp_path / JUDGEMENTS_FILE
    good, bad = to_line(unchanged_run(1)), to_line(unchanged_run(2))
    assert old in bad
    path.write_text(good + bad.replace(old, new, 1))
    with pytest.raises(ConfigError, match=rf"{path}:2: ({words}).*sed -i 2d") as caught:
        read_judgements(path)
    assert caught.value.exit_code == 2


def test_histories_are_merged(tmp_path: Path) -> None:
    """`hil history merge` brings lines along, also of a history that holds nothing else; each run is there
    once, and what the folder has of a run stays."""
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    first, second, third = (unchanged_run(number, days_ago=9 - number) for number in (1, 2, 3))
    for folder, runs in ((mine, (first, second)), (theirs, (replace(second, alpha=0.5), third))):
        folder.mkdir()
        write_judgements(folder / JUDGEMENTS_FILE, runs)
    for _ in range(2):
        assert run_command(["history", "merge", str(theirs), "--history", str(mine)]) == 0
        assert read_judgements(mine / JUDGEMENTS_FILE) == [first, second, third]


@pytest.mark.slow
def test_the_branch_keeps_them(tmp_path: Path) -> None:
    """`hil history push` and `fetch` carry the lines, one a run, as they do others."""
    origin = Repository(tmp_path / "origin")
    origin.commit({"README.md": "sources\n"})
    work = clone(origin, tmp_path / "work")
    nights, other = tmp_path / "nights", tmp_path / "other"
    runs = [unchanged_run(number, days_ago=9 - number) for number in (1, 2)]
    for folder, one in zip((nights, other), runs, strict=True):
        folder.mkdir()
        write_judgements(folder / JUDGEMENTS_FILE, [one])
        branch.push(work.path, folder, "judged")
    branch.fetch(work.path, nights)
    assert read_judgements(nights / JUDGEMENTS_FILE) == runs == with_runs(runs, [runs[0]])
