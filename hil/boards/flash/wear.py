# SPDX-License-Identifier: Apache-2.0
"""How often a board's flash was erased: a count a board, where hil.boards.lease.kept_dir says.

It is written before the erase, in one piece and under a lock, so that neither a crash nor another process
loses any. What others than ``hil`` write to a board is not counted.
"""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hil.base.flock import wait_for_lock
from hil.boards.lease import open_lock
from hil.boards.rack import Board

SECTOR_CYCLES = 100_000  # erases that makers of NOR flash promise of a sector
WARNED_SHARE = 0.5
_LOCK_TIMEOUT_S = 5.0
_RECORD_BYTES = 512  # fixed and within a page, so that one write replaces the record whole


@dataclass(frozen=True)
class Wear:
    """What was erased of a board's flash since a day: ``sectors`` of 4 KiB in all.

    ``flashes`` are those of builds; a switch between two of them erases one sector, and ``switched`` counts
    these by the sector's offset.
    """

    since: str
    flashes: int = 0
    sectors: int = 0
    switched: Mapping[str, int] = field(default_factory=dict)

    @property
    def most(self) -> int:
        """How often the sector that was erased most often was erased, at most: in each flash once."""
        return self.flashes + max(self.switched.values(), default=0)

    def after(self, sectors: Sequence[int]) -> Wear:
        """Return what it is once the sectors at these offsets are erased."""
        total = self.sectors + len(sectors)
        if len(sectors) != 1:
            return Wear(self.since, self.flashes + 1, total, self.switched)
        at = f"{sectors[0]:#x}"
        return Wear(self.since, self.flashes, total, {**self.switched, at: self.switched.get(at, 0) + 1})

    def describe(self) -> str:
        """Return "flashed 3 times, switched 40 times, 1,234 sectors erased since 2026-11-20"."""
        switched = sum(self.switched.values())
        return (
            f"flashed {_times(self.flashes)}, switched {_times(switched)}, "
            f"{self.sectors:,} sectors erased since {self.since}"
        )

    def warning(self) -> str:
        """Return what a person should do about the sector that was erased most often; "" where nothing."""
        if self.most < WARNED_SHARE * SECTOR_CYCLES:
            return ""
        return (
            f"a sector of its flash was erased {self.most:,} times, and {SECTOR_CYCLES:,} are promised; "
            "replace the module before it forgets what is written."
        )


class WearCounter:
    """Counts erases in a folder of the rack."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def count(self, board: Board, sectors: Sequence[int]) -> None:
        """Add the sectors at these offsets to a board's count. Raises RigError as a lease does.

        A count that cannot be written stops no run: it is for people.
        """
        file = open_lock(_path(self._folder, board))
        try:
            with suppress(OSError):
                if wait_for_lock(file, timeout_s=_LOCK_TIMEOUT_S, waiting=lambda: None):
                    wear = _parse(os.pread(file, _RECORD_BYTES, 0)) or Wear(_today())
                    os.pwrite(file, _pack(wear.after(sectors)), 0)
                    os.fsync(file)
        finally:
            os.close(file)


def read_wear(folder: Path, board: Board) -> Wear | None:
    """Return what was counted of a board; None where nothing was."""
    try:
        return _parse(_path(folder, board).read_bytes()[:_RECORD_BYTES])
    except OSError:
        return None


def _path(folder: Path, board: Board) -> Path:
    """Return the file of a board's count: the flash stays with the chip, whatever the board is called."""
    name = board.mac.lower().replace(":", "") or board.id
    return folder / f"{name}.wear"


def _pack(wear: Wear) -> bytes:
    return json.dumps(asdict(wear)).encode().ljust(_RECORD_BYTES - 1) + b"\n"


def _parse(record: bytes) -> Wear | None:
    """Read a record; None where there is none, or none that is right."""
    try:
        values = json.loads(record)
        switched = {str(at): int(count) for at, count in values["switched"].items()}
        return Wear(str(values["since"]), int(values["flashes"]), int(values["sectors"]), switched)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _today() -> str:
    return datetime.datetime.now(tz=datetime.UTC).date().isoformat()
