# SPDX-License-Identifier: Apache-2.0
"""Run one virtual board until it is told to stop (SIGTERM, SIGINT) or its lifeline closes."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from hil.base.errors import ConfigError, HilError, RigError, exit_status
from hil.virtual.board import chips
from hil.virtual.board.config import BoardConfig
from hil.virtual.board.control import ControlServer, Faults, Switched, VirtualFaults
from hil.virtual.board.flash import NorFlash
from hil.virtual.board.machine import VirtualBoard
from hil.virtual.board.uart import UartServer, Wired

_MAC_BYTES = 6


def argument_parser(program: str, description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument("--id", required=True, help="name of the board, for the log")
    serial = parser.add_mutually_exclusive_group(required=True)
    serial.add_argument("--listen-fd", type=int, help="an inherited listening socket")
    serial.add_argument("--port", type=int, help="TCP port on 127.0.0.1 for RFC 2217; 0 takes a free one")
    parser.add_argument("--control", type=Path, required=True, help="Unix socket to control the board")
    parser.add_argument("--flash", type=Path, required=True, help="file that holds the flash")
    parser.add_argument("--mac", required=True, help="MAC address, for example 24:0a:c4:00:00:01")
    parser.add_argument("--chip", default="esp32")
    parser.add_argument("--netns", type=Path, help="network namespace of the application")
    parser.add_argument(
        "--ap", help="the only network in the air; without it each that is asked for is there"
    )
    parser.add_argument("--ap-password", default="", help="its password; empty: it is open")
    parser.add_argument(
        "--strict", choices=("fail", "warn"), help="what fails on a chip; without it as the program is built"
    )
    parser.add_argument("--pace", action="store_true", help="bytes take their time, as the baud rate says")
    parser.add_argument("--log", type=Path, help="append what the board does to this file")
    parser.add_argument("--lifeline-fd", type=int, help="stop when this descriptor reaches its end")
    return parser


def parse_mac(text: str) -> bytes:
    """Return the six bytes of a MAC address. Raises ConfigError."""
    try:
        mac = bytes.fromhex(text.replace(":", ""))
    except ValueError:
        mac = b""
    if len(mac) != _MAC_BYTES:
        raise ConfigError(f"{text!r} is not a MAC address such as 24:0a:c4:00:00:01.")
    return mac


def open_listener(arguments: argparse.Namespace) -> socket.socket:
    """Return the listening socket. Raises RigError where the port is taken or the descriptor is none."""
    try:
        if arguments.listen_fd is not None:
            return socket.socket(fileno=arguments.listen_fd)
        return socket.create_server(("127.0.0.1", arguments.port))
    except OSError as error:
        raise RigError(
            f"Opening the serial port of board {arguments.id!r} failed: {error.strerror}.",
            next_step="Give a free --port, or 0 for any.",
        ) from error


def open_log(path: Path | None, board_id: str) -> Callable[[str], None]:
    """Return a function that appends a line with its time to ``path``; it drops lines where there is none."""
    if path is None:
        return lambda _line: None
    file = path.open("a", buffering=1, encoding="utf-8")
    return lambda line: print(f"{time.monotonic():.6f} {board_id} {line}", file=file)


class ServedBoard(Switched, Wired, Protocol):
    """A board that is switched on, served and closed."""

    def close(self) -> None: ...


Fail = Callable[[HilError], None]
MakeBoard = Callable[[argparse.Namespace, Callable[[str], None], Fail], tuple[ServedBoard, Faults]]


def virtual_board(
    arguments: argparse.Namespace, log: Callable[[str], None], _fail: Fail
) -> tuple[ServedBoard, Faults]:
    chip = chips.by_name(arguments.chip)
    board = VirtualBoard(board_config(arguments), NorFlash(arguments.flash, chip.flash_bytes), log)
    return board, VirtualFaults(board)


def board_config(arguments: argparse.Namespace) -> BoardConfig:
    """Return who the board is. Raises ConfigError."""
    chip = chips.by_name(arguments.chip)
    network = None if arguments.ap is None else (arguments.ap, arguments.ap_password)
    strict = None if arguments.strict is None else arguments.strict == "fail"
    return BoardConfig(
        arguments.id, chip, parse_mac(arguments.mac), arguments.netns, arguments.pace, network, strict
    )


async def serve(arguments: argparse.Namespace, make_board: MakeBoard = virtual_board) -> None:
    """Run the board until a signal, the end of the lifeline, or its own, which raises what it says."""
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[None] = loop.create_future()

    def end(error: HilError | None = None) -> None:
        if not stop.done():
            stop.set_exception(error) if error else stop.set_result(None)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    if arguments.lifeline_fd is not None:
        loop.add_reader(arguments.lifeline_fd, _watch_lifeline, arguments.lifeline_fd, end)
    log = open_log(arguments.log, arguments.id)
    listener = open_listener(arguments)
    board, faults = make_board(arguments, log, end)
    uart, control = UartServer(board, listener, log), ControlServer(board, faults, arguments.control)
    try:
        await uart.start()
        await control.start()
        board.power_on()
        address, port = listener.getsockname()[:2]
        print(f"{arguments.id} rfc2217://{address}:{port} {arguments.control}", flush=True)
        await stop
    finally:
        control.close()
        uart.close()
        board.close()


def _watch_lifeline(fd: int, end: Callable[[], None]) -> None:
    if not os.read(fd, 1024):
        asyncio.get_running_loop().remove_reader(fd)
        end()


def main(argv: Sequence[str] | None = None) -> int:
    arguments = argument_parser("hil.virtual.board", __doc__).parse_args(argv)
    return exit_status(lambda: asyncio.run(serve(arguments)))


if __name__ == "__main__":
    sys.exit(main())
