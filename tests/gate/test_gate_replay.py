# SPDX-License-Identifier: Apache-2.0
"""`hil gate` on a run that compared: the same verdict, byte for byte, from the run's folder alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hil import thresholds
from hil.cli.app import run_command
from hil.gate import judge
from hil.model import Fault
from hil.store import RunDirectory
from tests.gate import compare_records as rig
from tests.make_records import THRESHOLDS_ROOT, run_info


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
    """The same verdict, and the same screen; the sentence of each comparison is for --verbose."""
    stored = json.loads(run.verdicts_path.read_text())
    items = {item["metric"]: item for item in stored["compared"]}
    status, said = hil_gate()
    assert "same verdict, byte" in said
    assert status == stored["exit_code"]
    assert "? UNDECIDED: 4 comparisons" in said
    assert items[rig.METRIC]["sentence"] in hil_gate("--verbose")[1]


def test_a_run_that_lost_what_it_had_planned_is_not_judged(run: RunDirectory, hil_gate: Command) -> None:
    """Without run.json a broken-off run looks whole: exit 2, the file is named, nothing is written."""
    (run.path / "run.json").unlink()
    before = run.verdicts_path.read_bytes()
    for options in ((), ("--would-change",)):
        status, said = hil_gate(*options)
        assert status == 2
        assert "run.json is missing" in said
    assert run.verdicts_path.read_bytes() == before


def test_a_stored_runs_words_do_nothing_to_the_terminal(run: RunDirectory, hil_gate: Command) -> None:
    """A fault's sentence may be a fork's: its escapes are not printed, nor does it begin a line."""
    run.append(Fault(run.run_id, "firmware", 1, "panic \x1b]0;pwned\x07\n::add-mask::v1", "b\x1b[2J1"))
    said = hil_gate()[1]
    assert "Panic" in said
    assert "\x1b" not in said
    assert "\n::" not in said
