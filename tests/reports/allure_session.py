# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.reports.allure_session PYTEST-ARGUMENTS``: a session that measures boards in memory.

Everything between pytest and the boards is the project's own; what is played is the build, the network and
the boards themselves. With ``HIL_TEST_PANIC=b2`` that board's second case panics; with ``HIL_TEST_LIE=b2`` it
says that it sent each case's last message 20 ms before its plan.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from hil.base.errors import FirmwareError
from hil.boards.firmware.selection import Firmware
from hil.boards.rack import Board, Rack
from hil.model import Case, Entry, Rung, RunRecord, Series
from hil.network.peers.companion import Observed
from hil.run.interfaces import Boot
from hil.store import RunDirectory
from tests.make_records import publish_record


@dataclass
class MemoryDevice:
    board: Board
    measured: int = 0

    def confirm(self) -> None:
        """It always runs what was built."""

    def measure(self, case: Case, **_options: object) -> Observed:
        self.measured += 1
        if self.measured == 2 and self.board.id == os.environ.get("HIL_TEST_PANIC"):
            error = FirmwareError(f"board {self.board.id} panicked in {case.bench}.")
            error.case_id = case.case_id  # type: ignore[attr-defined]
            raise error
        record = publish_record(board=self.board.id, overrides=case.parameters)
        columns = dict(record.columns)
        if self.board.id == os.environ.get("HIL_TEST_LIE"):
            columns["sent_us"] = (*columns["sent_us"][:-1], columns["planned_us"][-1] - 20_000)
        series = Series(case, columns, record.warmup_rows, record.clock, "ab" * 32, "cd" * 32, 1)
        return Observed(series, {})


class MemoryRig:
    """hil.run.interfaces.Rig without hardware, with the journal on disk."""

    def __init__(
        self, rack: Rack, run: RunDirectory, run_id: str, *_rest: object, **_options: object
    ) -> None:
        self._rack, self._run, self._run_id = rack, run, run_id

    def prepare(self, board: Board, *_image: object, **_options: object) -> None:
        """The image is there."""

    @contextmanager
    def boot(self, board: Board, *_image: object, **_options: object) -> Iterator[MemoryDevice]:
        yield MemoryDevice(board)

    def rungs(self, _board: Board) -> tuple[Rung, ...]:
        return ()

    def record(self, board: Board, boot: Boot, case: Case, outcome: Observed, started_utc: str) -> RunRecord:
        record = publish_record(board=board.id, overrides=case.parameters, boot_index=boot.index)
        names = {"run_id": self._run_id, "rack": self._rack.name, "parameters": case.parameters}
        return replace(record, **names, columns=outcome.series.columns, started_utc=started_utc)

    @contextmanager
    def lease_air(self, **_options: object) -> Iterator[None]:
        yield

    @contextmanager
    def lease_rack(self, **_options: object) -> Iterator[None]:
        yield

    def append(self, entry: Entry) -> None:
        self._run.append(entry)

    def now_utc(self) -> str:
        return "2026-11-20T22:12:57Z"


class Played:
    """A pytest plugin that puts the rig in memory where the real one is made."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        measure = sys.modules["hil.fixtures.measure"]
        played: Mapping[str, object] = {
            "read_access_point": lambda *_arguments, **_options: None,
            "find_builds": lambda _firmware, images, _say: dict.fromkeys(
                images, Firmware(Path("build"), "ab" * 32)
            ),
            "start_network": lambda *_arguments: SimpleNamespace(stop=lambda: None),
            "LabRig": MemoryRig,
        }
        for name, what in played.items():
            assert hasattr(measure, name), f"hil.fixtures.measure has no {name} to be played"
            setattr(measure, name, what)


if __name__ == "__main__":
    imported = ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
    sys.exit(pytest.main([*imported, *sys.argv[1:]], plugins=[Played()]))
