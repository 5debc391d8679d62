# SPDX-License-Identifier: Apache-2.0
"""`hil gate` on a run that compared: the same verdict, byte for byte, from the run's folder alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hil import thresholds
from hil.gate import judge
from hil.model import Fault
from hil.store import RunDirectory
from tests.gate import compare_records as rig
from tests.make_records import RUN_ID, THRESHOLDS_ROOT

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A judged run with a comparison, as `hil run --base` leaves it."""
    directory = RunDirectory.create(tmp_path / "out", RUN_ID)
    for entry in rig.run(effect=0.2, looks=rig.LOOKS[:1], entry=rig.comparison()):
        directory.append(entry)
    directory.write_info(
        {"run_id": RUN_ID, "rack": "virtual", "suite": "pr", "started_utc": "2026-11-20T22:12:57Z"}
    )
    shutil.copytree(THRESHOLDS_ROOT, directory.path / "thresholds")
    limits = thresholds.load_all(directory.path / "thresholds")
    directory.write_verdict(judge(directory.read().entries, limits))
    return directory


def hil_gate(run: RunDirectory, *options: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "hil", "gate", str(run.path), *options]
    return subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)


def test_a_comparison_is_replayed_byte_for_byte(run: RunDirectory) -> None:
    """The same verdict, and the same screen; the sentence of each comparison is for --verbose."""
    stored = json.loads(run.verdicts_path.read_text())
    items = {item["metric"]: item for item in stored["compared"]}
    done = hil_gate(run)
    assert "the same verdict, byte for byte" in done.stdout, done.stdout + done.stderr
    assert done.returncode == stored["exit_code"]
    assert "? UNDECIDED: 3 comparisons" in done.stdout
    assert items[rig.METRIC]["sentence"] in hil_gate(run, "--verbose").stdout


def test_a_run_that_lost_what_it_had_planned_is_not_judged(run: RunDirectory) -> None:
    """Without run.json a broken-off run looks whole: exit 2, the file is named, nothing is written."""
    (run.path / "run.json").unlink()
    before = run.verdicts_path.read_bytes()
    for options in ((), ("--would-change",)):
        done = hil_gate(run, *options)
        assert done.returncode == 2, done.stdout + done.stderr
        assert "run.json is missing, so what the run had planned is not known" in done.stdout + done.stderr
    assert run.verdicts_path.read_bytes() == before


def test_a_stored_runs_words_do_nothing_to_the_terminal(run: RunDirectory) -> None:
    """A fault's sentence may be a fork's: its escapes are not printed, nor does it begin a line."""
    run.append(Fault(run.run_id, "firmware", 1, "panic \x1b]0;pwned\x07\n::add-mask::v1", "b\x1b[2J1"))
    done = hil_gate(run)
    assert "Panic" in done.stdout, done.stdout + done.stderr
    assert "\x1b" not in done.stdout
    assert "\n::" not in done.stdout
