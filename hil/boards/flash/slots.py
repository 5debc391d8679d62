# SPDX-License-Identifier: Apache-2.0
"""Two builds side by side: each in an OTA slot of its own, and otadata says which one boots.

Bootloader and partition table are the first build's. A switch erases and writes one sector of otadata, the
one that does not rule, so that an interrupted switch leaves the other one in force.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hil.base.errors import RigError
from hil.boards.firmware.build_folder import app_image, check_burns_nothing
from hil.boards.firmware.otadata import SECTOR_BYTES, next_sequence, sector
from hil.boards.firmware.partition_table import DATA_OTA, Partition, find_data
from hil.boards.flash.tool import FlashResult, parts_of, table_of, with_empty_nvs, write, write_of
from hil.boards.flash.words import Write
from hil.boards.rack import Board


@dataclass(frozen=True)
class SlotLayout:
    """The OTA slots of a partition table, by number, and its otadata."""

    slots: tuple[Partition, ...]
    otadata: Partition


def why_not_side_by_side(first: Path, second: Path) -> str:
    """Return why two builds cannot be on a board at once, "" where they can.

    The sentence is about the second one. Raises ConfigError where one of them is no build.
    """
    table = table_of(first)
    layout = _layout(table)
    if layout is None:
        return "its partition table has no two OTA slots with otadata"
    if table != table_of(second):
        return "its partition table is another one"
    room = min(slot.size_bytes for slot in layout.slots[:2])
    largest = max(app_image(build).stat().st_size for build in (first, second))
    return f"an image of {largest:,} bytes does not fit an OTA slot of {room:,}" if largest > room else ""


class SlotFlasher:
    """Two builds on one board, by name; ``order`` says which one is in slot 0 and which one in slot 1.

    The first of ``builds`` is the one whose bootloader and partition table are used. ``folder`` takes logs
    and the sectors written.

    Flash before you switch: what otadata holds is not read but known, as nobody else writes it meanwhile.
    """

    def __init__(
        self,
        board: Board,
        builds: Mapping[str, Path],
        *,
        order: tuple[str, str],
        folder: Path,
        stop: threading.Event | None = None,
    ) -> None:
        """Raises RigError where the builds cannot be side by side, which is asked before."""
        layout = _layout(table_of(next(iter(builds.values()))))
        if layout is None:
            raise RigError(f"the builds for board {board.id} have no two OTA slots with otadata.")
        self._board, self._builds, self._order, self._layout = board, builds, order, layout
        self._folder, self._stop = folder, stop
        self._sequence = 0
        self._ruling = 0  # which of the two sectors rules
        self.selected = ""

    def flash(self, name: str) -> FlashResult:
        """Write both builds with empty NVS, and otadata so that ``name`` boots. Raises as flash() does."""
        for build in self._builds.values():
            check_burns_nothing(build)
        lead = next(iter(self._builds.values()))
        apps = {app_image(build).resolve() for build in self._builds.values()}
        layout = self._layout
        parts = [
            (offset, part)
            for offset, part in parts_of(lead)
            if (lead / part).resolve() not in apps and offset != layout.otadata.offset
        ]
        parts += [
            (slot.offset, str(app_image(self._builds[build]).resolve()))
            for slot, build in zip(layout.slots, self._order, strict=False)
        ]
        self._sequence, self._ruling = self._next(name, after=0), 0
        content = sector(self._sequence).ljust(2 * SECTOR_BYTES, b"\xff")
        parts.append((layout.otadata.offset, self._keep(content)))
        parts = with_empty_nvs(lead, parts, files=self._folder / self._board.id)
        result = self._write(write_of(lead, parts))
        self.selected = name
        return result

    def switch(self, name: str) -> FlashResult:
        """Have ``name`` boot after the next reset. Raises HilError as flash() does."""
        self._sequence, self._ruling = self._next(name, after=self._sequence), 1 - self._ruling
        self.selected = name
        return self.repeat()

    def repeat(self) -> FlashResult:
        """Write the sector of the last switch again: it did not take, and the other one still rules."""
        lead = next(iter(self._builds.values()))
        offset = self._layout.otadata.offset + self._ruling * SECTOR_BYTES
        what = write_of(lead, [(offset, self._keep(sector(self._sequence)))])
        return self._write(replace(what, doing="switching the slot of"))

    @property
    def slot(self) -> str:
        """Return the slot that boots: ota_0 or ota_1."""
        return f"ota_{self._order.index(self.selected)}"

    def _next(self, name: str, *, after: int) -> int:
        return next_sequence(after, self._order.index(name), slot_count=len(self._layout.slots))

    def _keep(self, content: bytes) -> str:
        path = (self._folder / f"{self._board.id}.otadata.bin").resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return str(path)

    def _write(self, what: Write) -> FlashResult:
        log = self._folder / f"{self._board.id}.log"
        return write(self._board, what, log=log, stop=self._stop)


def _layout(table: tuple[Partition, ...]) -> SlotLayout | None:
    slots = tuple(sorted((part for part in table if part.is_ota_slot), key=lambda part: part.subtype))
    otadata = find_data(table, DATA_OTA)
    if len(slots) < 2 or otadata is None or otadata.size_bytes < 2 * SECTOR_BYTES:
        return None
    return SlotLayout(slots, otadata)
