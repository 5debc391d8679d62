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
from hil.history import save
from hil.history.loading import HISTORY_FOLDER, read_past
from hil.store import RunDirectory
from tests.gate import compare_records as rig
from tests.make_records import RUN_ID, THRESHOLDS_ROOT

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
BASELINE = """\
schema: 1
rack: virtual
epochs:
  - accepted: 2026-11-19
    by: R. Tester
    reason: for the test
    commit: {commit}
    sessions:
{sessions}
"""


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A judged run with a comparison, its history and its accepted epoch, as `hil run --base` leaves it."""
    directory = RunDirectory.create(tmp_path / "out", RUN_ID)
    for entry in rig.run(effect=0.2, looks=rig.UNEVEN_LOOKS[:1], entry=rig.comparison()):
        directory.append(entry)
    directory.write_info(
        {"run_id": RUN_ID, "rack": "virtual", "suite": "pr", "started_utc": "2026-11-20T22:12:57Z"}
    )
    known = rig.past()
    save(known.history, directory.path / HISTORY_FOLDER)
    shutil.copytree(
        THRESHOLDS_ROOT, directory.path / "thresholds", ignore=shutil.ignore_patterns("baselines")
    )
    baselines = directory.path / "thresholds" / "baselines"
    baselines.mkdir()
    sessions = "\n".join(f'      {one.run_id}: "{one.digest}"' for one in known.history.sessions)
    (baselines / "virtual.yaml").write_text(BASELINE.format(commit="ab" * 20, sessions=sessions))
    limits = thresholds.load_all(directory.path / "thresholds")
    directory.write_verdict(judge(directory.read().entries, limits, read_past(directory.path)))
    return directory


def hil_gate(run: RunDirectory) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "hil", "gate", str(run.path)]
    return subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)


def test_a_comparison_is_replayed_byte_for_byte(run: RunDirectory) -> None:
    """History and epoch come from the run's folder; the line of each comparison is printed."""
    stored = json.loads(run.verdicts_path.read_text())
    items = {item["metric"]: item for item in stored["compared"]}
    assert items[rig.METRIC]["history_sessions"] == 12
    assert items[rig.METRIC]["history_weight"] > 0
    done = hil_gate(run)
    assert "the same verdict, byte for byte" in done.stdout, done.stdout + done.stderr
    assert done.returncode == stored["exit_code"]
    assert items[rig.METRIC]["sentence"] in done.stdout


def test_the_run_s_folder_is_all_that_is_read(run: RunDirectory) -> None:
    """Where its history is gone, nothing anchors the comparison; base boots are judged by no limit."""
    shutil.rmtree(run.path / HISTORY_FOLDER)
    limits = thresholds.load_all(run.path / "thresholds")
    found = judge(run.read().entries, limits, read_past(run.path))
    items = {item.metric: item for item in found.compared}
    assert items[rig.METRIC].history_note == "no history"
    assert {item.boots for item in found.series} == {2}
