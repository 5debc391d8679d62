# SPDX-License-Identifier: Apache-2.0
"""Many runs want the boards of two racks, and whatever takes part is killed: never have two of them one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.boards.farm import LABGRID
from tools.bench.lease_race import run_race


@pytest.mark.slow
@pytest.mark.heavy
def test_no_board_is_leased_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs race for boards as `hil run` leases them, with runs, keepers, exporters and the coordinator killed
    at random. A lock that the kernel keeps says that nobody had a board beside another, and at the end each
    board can be leased. `make bench-leases` does it 1,000 times."""
    monkeypatch.setenv("PATH", str(LABGRID), prepend=":")
    race, stuck = run_race(tmp_path, 40, seed=3)
    assert race.said["leased"] > 0
    assert sum(race.killed.values()) > 0
    assert race.said["double"] == 0
    assert not stuck
