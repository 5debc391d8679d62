# SPDX-License-Identifier: Apache-2.0
"""Run one emulated board until it is told to stop (SIGTERM, SIGINT), its lifeline closes, or QEMU dies."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence

from hil.base.errors import exit_status
from hil.virtual.board.__main__ import Fail, board_config, parse_arguments, serve
from hil.virtual.board.flash import NorFlash
from hil.virtual.emulator.faults import EmulatedFaults
from hil.virtual.emulator.machine import EmulatedBoard
from hil.virtual.emulator.qemu import find_qemu


def emulated_board(
    arguments: argparse.Namespace, log: Callable[[str], None], fail: Fail
) -> tuple[EmulatedBoard, EmulatedFaults]:
    """Return the board and its faults. Raises ConfigError, RigError."""
    config, qemu = board_config(arguments), find_qemu(arguments.chip)
    flash = NorFlash(arguments.flash, config.chip.flash_bytes)
    board = EmulatedBoard(config, qemu, flash, log, fail)
    return board, EmulatedFaults(board)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parse_arguments(argv, "hil.virtual.emulator", __doc__)
    return exit_status(lambda: asyncio.run(serve(arguments, emulated_board)))


if __name__ == "__main__":
    sys.exit(main())
