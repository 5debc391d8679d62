# SPDX-License-Identifier: Apache-2.0
"""Run one emulated board until a signal (SIGTERM, SIGINT), the end of its lifeline or of its emulator."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence

from hil.base.errors import exit_status
from hil.virtual.board.__main__ import Fail, argument_parser, parse_mac, serve
from hil.virtual.board.flash import NorFlash
from hil.virtual.emulator import drivers
from hil.virtual.emulator.driver import EmulatedConfig
from hil.virtual.emulator.faults import EmulatedFaults
from hil.virtual.emulator.machine import EmulatedBoard

FLASH_BYTES = 16 << 20


def emulated_board(
    arguments: argparse.Namespace, log: Callable[[str], None], fail: Fail
) -> tuple[EmulatedBoard, EmulatedFaults]:
    """Return the board and its faults. Raises ConfigError, RigError."""
    emulator = drivers.find(arguments.emulator, arguments.chip)
    config = EmulatedConfig(
        arguments.id,
        arguments.chip,
        parse_mac(arguments.mac),
        arguments.netns,
        arguments.network,
        arguments.ap or "",
        arguments.ap_password,
    )
    board = EmulatedBoard(config, emulator, NorFlash(arguments.flash, FLASH_BYTES), log, fail)
    return board, EmulatedFaults(board)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argument_parser("hil.virtual.emulator", __doc__)
    parser.add_argument("--emulator", choices=tuple(drivers.DRIVERS), required=True)
    parser.add_argument("--network", default="openeth")
    arguments = parser.parse_args(argv)
    return exit_status(lambda: asyncio.run(serve(arguments, emulated_board)))


if __name__ == "__main__":
    sys.exit(main())
