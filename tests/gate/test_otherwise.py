# SPDX-License-Identifier: Apache-2.0
"""`hil gate --would-change`: which stored verdicts this version would give otherwise; nothing is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hil import thresholds
from hil.cli.app import run_command
from hil.gate import judge
from hil.gate.otherwise import NONE, judged_otherwise
from hil.model import Verdict
from hil.store import RunDirectory
from tests.gate import compare_records as rig
from tests.make_records import RUN_ID, THRESHOLDS_ROOT, run_info

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
    """0 where none, 4 where any, 2 where a run cannot be judged, which costs the others nothing."""
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


def test_one_run_is_judged_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two runs there is no one exit code: the sentence names the option that takes several."""
    assert run_command(["gate", str(tmp_path), str(tmp_path)]) == 2
    assert "--would-change takes several" in capsys.readouterr().err
