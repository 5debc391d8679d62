# SPDX-License-Identifier: Apache-2.0
"""Which firmware is on a board: written once, and switched between two that lie side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from hil.base.errors import ConfigError, RigError
from hil.base.flash_command import LABEL
from hil.base.paths import PROJECT_ROOT
from hil.base.project import flash_here
from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.selection import Firmware
from hil.boards.flash import FlashResult, SlotFlasher, erase, flash
from hil.boards.flash.by_command import CommandFlasher, is_by_command
from hil.boards.rack import Board
from hil.model import Role

Builds = Mapping[Role, Firmware]  # of one image: the candidate, and what it is compared with


class BoardImages:
    """``folder`` takes the logs of esptool."""

    def __init__(
        self,
        firmware: Mapping[Image, Builds],
        *,
        folder: Path,
        masked: Callable[[Board, str], str] = lambda _board, text: text,
    ) -> None:
        self._masked = masked
        self._firmware = firmware
        self._folder = folder
        self._slots: dict[str, SlotFlasher | CommandFlasher] = {}  # of boards with two builds, or a command
        self._notes: dict[str, list[str]] = {}
        self._flashed: dict[tuple[str, Image], Mapping[Role, Path]] = {}  # where it is not the build itself

    def build(self, image: Image, role: Role) -> Firmware:
        """Return the build of an image that has this role."""
        return self._firmware[image][role]

    def dress(self, board: Board, image: Image, dressed: Callable[[Board, Role, Path], Path]) -> None:
        """Have what is flashed of an image made by ``dressed`` of its build, for this board."""
        self._flashed[board.id, image] = {
            role: dressed(board, role, build.build_dir) for role, build in self._firmware[image].items()
        }

    def erase(self, board: Board, *, stop: threading.Event) -> None:
        """Erase a board's flash. Raises HilError as flash() does."""
        log = self._folder / f"{board.id}.log"
        erase(board, log=log, stop=stop)

    def facts(self, board: Board) -> dict[str, str]:
        """Return what a record says of the board's flash: what went wrong at first when it was last written,
        and of two builds side by side the slot that boots."""
        slots = self._slots.get(board.id)
        slot = {"slot": slots.slot} if isinstance(slots, SlotFlasher) else {}
        return {"flash_note": "; ".join(self._notes.get(board.id, ())), **slot}

    def write(
        self,
        board: Board,
        image: Image,
        role: Role,
        *,
        slot: int = 0,
        alone: bool = False,
        stop: threading.Event,
    ) -> None:
        """Put all builds of an image on a board, the candidate in ``slot``, or one ``alone``; ``role`` boots
        next.

        Raises HilError as flash() does.
        """
        self._notes[board.id] = []
        self._slots.pop(board.id, None)
        builds = {role: self._firmware[image][role]} if alone else self._firmware[image]
        if is_by_command(board):
            self._slots[board.id] = self._by_command(board, builds, stop)
            self._note(board, self._slots[board.id].flash(role))
            return
        if len(builds) == 1:
            log = self._folder / f"{board.id}.log"
            build_dir = self._flashed_of(board, image, role)
            result = flash(board, build_dir, log=log, stop=stop, keeps_nvs=False)
            self._note(board, result)
            return
        names = sorted(builds, key=lambda role: role != "candidate")
        self._slots[board.id] = SlotFlasher(
            board,
            {role: self._flashed_of(board, image, role) for role in names},
            order=(names[slot], names[1 - slot]),
            folder=self._folder,
            stop=stop,
        )
        self._note(board, self._slots[board.id].flash(role))

    def _by_command(self, board: Board, builds: Builds, stop: threading.Event) -> CommandFlasher:
        command = flash_here()
        if command is None:
            raise ConfigError(
                f"{board.where}: board {board.id} has the label {LABEL}, but no hil.toml has a "
                "command for it.",
                next_step='write into it: [flash] command = "idf.py -B {build} -p {port} encrypted-flash".',
            )
        return CommandFlasher(
            board,
            {role: build.build_dir for role, build in builds.items()},
            command,
            where=PROJECT_ROOT,
            folder=self._folder,
            masked=partial(self._masked, board),
            stop=stop,
        )

    def _flashed_of(self, board: Board, image: Image, role: Role) -> Path:
        """Return the folder that is flashed for a build."""
        return self._flashed.get((board.id, image), {}).get(role, self._firmware[image][role].build_dir)

    def select(self, board: Board, role: Role, *, again: bool = False) -> bool:
        """Have ``role`` boot next; return whether that took a switch. ``again`` repeats the last one.

        Raises HilError as flash() does.
        """
        slots = self._slots.get(board.id)
        if slots is None or (slots.selected == role and not again):
            return False
        if again:
            self._notes[board.id].append(f"the switch to the {role} did not take at first and was repeated")
        self._note(board, slots.repeat() if again else slots.switch(role))
        return True

    def _note(self, board: Board, result: FlashResult) -> None:
        if result.note:
            self._notes[board.id].append(result.note)


def check_image(board: Board, built: str, running: str) -> None:
    """Raise RigError where a board runs something else than what was built."""
    if running != built:
        raise RigError(
            f"board {board.id} on {board.serial} runs {running[:12] or 'an unknown image'}, not "
            f"the image that was built ({built[:12]}).",
            next_step="run again; if it happens again, the board's flash is defective.",
        )
