# SPDX-License-Identifier: Apache-2.0
"""`hil gate` on a stored run: the same verdict, byte for byte, and what would be judged otherwise now."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hil import thresholds
from hil.cli.app import run_command
from hil.gate import judge
from hil.gate.otherwise import NONE, judged_otherwise
from hil.model import Fault, Verdict
from hil.store import RunDirectory
from tests.gate import compare_records as rig
from tests.make_records import RUN_ID, THRESHOLDS_ROOT, run_info


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A judged run with a comparison, as `hil run --base` leaves it."""
    directory = RunDirectory.create(tmp_path / "out", run_info(suite="pr"))
    for entry in rig.run(effect=0.2, looks=rig.LOOKS[:1], entry=rig.comparison()):
        directory.append(entry)
    shutil.copytree(THRESHOLDS_ROOT, directory.path / "thresholds")
    limits = thresholds.load_all(directory.path / "thresholds")
    directory.write_verdict(judge(directory.read().entries, limits))
    return directory


Command = Callable[..., tuple[int, str]]


@pytest.fixture
def hil_gate(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command; returns its exit code and all that it said."""

    def start(*options: str) -> tuple[int, str]:
        status = run_command(["gate", str(run.path), *options])
        return int(status), "".join(capsys.readouterr())

    return start


def test_a_comparison_is_replayed_byte_for_byte(run: RunDirectory, hil_gate: Command) -> None:
    """The same verdict, and the same screen; the sentence of each comparison is for --verbose. A fault's
    sentence may be a fork's: its escapes are not printed, nor does it begin a line."""
    stored = json.loads(run.verdicts_path.read_text())
    items = {item["metric"]: item for item in stored["compared"]}
    status, said = hil_gate()
    assert "same verdict, byte" in said
    assert json.loads(run.verdicts_path.read_text()) == stored
    assert status == stored["exit_code"]
    assert "? UNDECIDED: 4 comparisons" in said
    assert items[rig.METRIC]["sentence"] in hil_gate("--verbose")[1]
    run.append(Fault(run.run_id, "firmware", 1, "panic \x1b]0;pwned\x07\n::add-mask::v1", "b\x1b[2J1"))
    said = hil_gate()[1]
    assert "Panic" in said
    assert "\x1b" not in said
    assert "\n::" not in said


def test_a_run_that_lost_what_it_had_planned_is_not_judged(run: RunDirectory, hil_gate: Command) -> None:
    """Without run.json a broken-off run looks whole: exit 2, the file is named, nothing is written."""
    (run.path / "run.json").unlink()
    before = run.verdicts_path.read_bytes()
    for options in ((), ("--would-change",)):
        status, said = hil_gate(*options)
        assert status == 2
        assert "run.json is missing" in said
    assert run.verdicts_path.read_bytes() == before


REGRESSED = rig.run(effect=0.2, looks=rig.LOOKS[:2], entry=rig.comparison())


@pytest.fixture(scope="module")
def verdict() -> Verdict:
    """What this version says of a run with a comparison that regressed."""
    limits = {"publish": thresholds.load("publish", THRESHOLDS_ROOT)}
    return judge(REGRESSED, limits)


def leave(out: Path, run_id: str, verdict: Verdict) -> RunDirectory:
    """Leave a run whose stored verdict is ``verdict``."""
    directory = RunDirectory.create(out, run_info(run_id=run_id, suite="pr"))
    for entry in REGRESSED:
        directory.append(entry)
    directory.keep([THRESHOLDS_ROOT / "publish.yaml"], "thresholds")
    directory.write_verdict(verdict)
    return directory


def older(verdict: Verdict) -> Verdict:
    """Return what a version of before might have said: the comparison passed, a limit did not block."""
    compared = tuple(
        replace(item, outcome="pass") if item.metric == rig.METRIC else item for item in verdict.compared
    )
    first, *rest = verdict.series
    series = (replace(first, blocking=not first.blocking), *rest[:-1])
    return replace(verdict, outcome="pass", exit_code=0, compared=compared, series=series)


def test_only_words_and_blocking_count(verdict: Verdict) -> None:
    """A run, a comparison, a limit that blocks, a series that is new: each with both words and why."""
    changed = older(verdict)
    found = {one.subject: one for one in judged_otherwise(changed, verdict)}
    regressed = next(item for item in verdict.compared if item.metric == rig.METRIC)
    first, last = verdict.series[0], verdict.series[-1]
    assert set(found) == {"the run", regressed.series_id, first.series_id, last.series_id}
    assert (found["the run"].before, found["the run"].now) == ("pass (exit 0)", "regressed (exit 1)")
    assert found["the run"].reason == verdict.sentence
    one = found[regressed.series_id]
    assert (one.before, one.now, one.reason) == ("pass", "regressed", regressed.sentence)
    assert found[last.series_id].before == NONE
    assert "(advice)" in found[first.series_id].before + found[first.series_id].now
    numbers = replace(verdict, series=tuple(replace(item, value=1.0) for item in verdict.series))
    assert judged_otherwise(numbers, verdict) == ()
    gone = judged_otherwise(verdict, replace(verdict, series=verdict.series[:-1]))
    assert [(one.before, one.now) for one in gone] == [(found[last.series_id].now, NONE)]


def test_it_says_by_its_status_whether_any_would_be_otherwise(
    tmp_path: Path, verdict: Verdict, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 where none, 4 where any, 2 where a run cannot be judged, which costs the others nothing. Of two runs
    there is no one exit code without it: the sentence names the option."""
    same, changed = leave(tmp_path, RUN_ID, verdict), leave(tmp_path, f"{RUN_ID}b", older(verdict))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert run_command(["gate", "--would-change", str(same.path)]) == 0
    assert f"{same.path}: the same\n1 run: 0 would " in capsys.readouterr().out
    assert run_command(["gate", "--would-change", str(same.path), str(changed.path)]) == 4
    said = capsys.readouterr().out
    assert f"{changed.path}: 4 verdicts " in said
    assert "\n  pass (exit 0) → regressed (exit 1)," in said
    assert "\n2 runs: 1 would " in said
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    lost = leave(tmp_path, f"{RUN_ID}c", verdict)
    lost.verdicts_path.unlink()
    assert run_command(["gate", "--would-change", str(lost.path), str(changed.path)]) == 2
    said = capsys.readouterr().out
    assert "not judged: " in said
    assert "4 verdicts " in said
    assert said.endswith(", 1 could not be judged.\n")
    assert run_command(["gate", str(tmp_path), str(tmp_path)]) == 2
    assert "--would-change takes several" in capsys.readouterr().err
