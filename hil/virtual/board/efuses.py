# SPDX-License-Identifier: Apache-2.0
"""A chip's eFuse controller, as a serial client drives it: it reads blocks, and programs bits that stay.

Programmed bits outlive resets and cuts of the supply, and are gone with the board's process. Nothing that
they would lock is locked, but for the blocks that may not be read any more: they read as 0.

Source: the Technical Reference Manuals, chapter "eFuse Controller".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hil.boards.chip_state import efuse_blocks
from hil.virtual.board.chip import EfuseController

_PROGRAM, _READ = 0x2, 0x1
_ALLOWED = 0x5A5A  # what the configuration register has to hold for bits to be programmed


class Efuses:
    """The eFuses of one chip."""

    def __init__(self, chip: str, controller: EfuseController) -> None:
        self._controller = controller
        self._blocks = [
            range(controller.base + offset, controller.base + offset + 4 * words, 4)
            for offset, words in efuse_blocks(chip)
        ]
        self._programmed: dict[int, int] = {}

    def read(self, address: int, made: int) -> int:
        """Return a word, given what the chip was made with."""
        number = next((number for number, words in enumerate(self._blocks) if address in words), None)
        if number is None:
            return made
        locked_at, shift, first = self._controller.read_locks
        locks = self._programmed.get(self._controller.base + locked_at, 0) >> shift
        if number >= first and locks >> (number - first) & 1:
            return 0
        return made | self._programmed.get(address, 0)

    def obey(self, registers: Mapping[int, int]) -> Mapping[int, int]:
        """Do what the command register says; return the registers that it changes."""
        controller = self._controller
        command = registers.get(controller.command, 0)
        if command & _PROGRAM and registers.get(controller.config) == _ALLOWED:
            named = {command >> 2 & 0xF: controller.data[0]}
            blocks = named if len(controller.data) == 1 else dict(enumerate(controller.data))
            for block, data in blocks.items():
                self._program(block, [registers.get(data + 4 * word, 0) for word in range(8)])
        return {controller.command: 0} if command & (_PROGRAM | _READ) else {}

    def _program(self, block: int, bits: Sequence[int]) -> None:
        if block < len(self._blocks):
            for address, word in zip(self._blocks[block], bits, strict=False):
                self._programmed[address] = self._programmed.get(address, 0) | word
