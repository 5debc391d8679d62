# SPDX-License-Identifier: Apache-2.0
"""An undecided run on a virtual board: taken further by `hil run --more`, killed, and gone on with."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gate.gate_lab import GateLab, open_gate_lab, suites
from tests.lab import Running, of_type
from tests.variants import renamed

pytestmark = [pytest.mark.slow, pytest.mark.heavy]

TOLERANCE = 0.15  # a busy machine's boots differ by some per cent


@pytest.fixture
def gate_lab() -> Iterator[GateLab]:
    folder = Path(tempfile.mkdtemp(prefix="hil-lab-"))
    yield open_gate_lab(folder, 1, suites((128,), 20, 5_000), tolerance=TOLERANCE)
    shutil.rmtree(folder)


def test_an_undecided_run_is_taken_further(gate_lab: GateLab, virtual_firmware: Path) -> None:
    """3 + 3 boots of one board decide nothing, and the run says how it goes on. More boots that are killed
    leave its verdict; asked again they measure what is missing, and asked once more nothing."""
    candidate = renamed(virtual_firmware, "0.0.0-more")
    judged = gate_lab.compare(candidate, virtual_firmware, "--budget", "0.1", "--noise", "quiet")
    (one,) = judged.blocking
    assert (one["candidate_boots"], one["other_boots"], judged.exit_code in (0, 4)) == (3, 3, True), (
        judged.said
    )
    assert re.search(
        rf"8 more boots of each a board, about \d+ min: hil run --more\s+{judged.path}", judged.said
    )

    offered = json.loads((judged.path / "run.json").read_text())["more"]
    assert (offered["boots"], offered["boards"]) == (8, ["b1"])

    lab = gate_lab.lab
    before = lab.entries()
    more = [sys.executable, "-m", "hil", "run", "--more", str(judged.path), "--no-report"]
    running = Running(more, lab.folder / "more.txt", lab.env)
    running.await_line(r"b1 \[2/16[,\]]")
    running.send(signal.SIGKILL)
    running.wait()
    lab.await_nothing_left()
    assert lab.entries()[: len(before)] == before
    assert json.loads((judged.path / "verdicts.json").read_text()) == judged.verdict
    assert gate_lab.replay(judged.path).returncode == judged.verdict["exit_code"]

    there = len(lab.entries())
    running = Running(more, lab.folder / "more.txt", lab.env)
    code = running.wait()
    added = lab.entries()[there:]
    assert len(added) == 16 - (there - len(before)), running.said()
    records = of_type(lab.entries(), "record")
    assert Counter(record["role"] for record in records) == {"candidate": 11, "base": 11}
    assert [record["boot_index"] for record in records] == list(range(22))
    assert [record["environment"]["noise"]["boot"] for record in records] == list(
        range(22)
    )  # none is drawn twice
    verdict = json.loads((judged.path / "verdicts.json").read_text())
    (one,) = (item for item in verdict["compared"] if item["blocking"])
    assert (one["candidate_boots"], one["other_boots"], one["look"]) == (11, 11, 2)
    flashed = (judged.path / "flash" / "b1.log").read_text()
    in_slot_0 = re.findall(r"Writing '(.*)' at 0x00010000", flashed)
    assert in_slot_0[0] != in_slot_0[1] == in_slot_0[2]  # the slots are swapped once
    info = json.loads((judged.path / "run.json").read_text())
    assert [set(sitting) - {"argv", "before"} for sitting in info["continued"]] == [
        {"lease_acquired_utc"},
        {"lease_acquired_utc", "lease_released_utc"},
    ]

    assert "more" not in info  # there is no further look

    again = lab.hil(*more[3:])
    assert again.returncode == code
    assert code == (0 if verdict["outcome"] == "undecided" else verdict["exit_code"])  # as the lab asks for
    assert "nothing more is measured" in again.stdout
    assert lab.entries() == [*before, *lab.entries()[len(before) :]]
