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

from hil.base.errors import ConfigError, RigError, exit_status
from hil.virtual.board import chips
from hil.virtual.board.config import BoardConfig
from hil.virtual.board.control import ControlServer
from hil.virtual.board.flash import NorFlash
from hil.virtual.board.machine import Board
from hil.virtual.board.uart import UartServer

_MAC_BYTES = 6


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hil.virtual.board", description=__doc__)
    parser.add_argument("--id", required=True, help="name of the board, for the log")
    serial = parser.add_mutually_exclusive_group(required=True)
    serial.add_argument("--listen-fd", type=int, help="an inherited listening socket")
    serial.add_argument("--port", type=int, help="TCP port on 127.0.0.1 for RFC 2217; 0 takes a free one")
    parser.add_argument("--control", type=Path, required=True, help="Unix socket to control the board")
    parser.add_argument("--flash", type=Path, required=True, help="file that holds the flash")
    parser.add_argument("--mac", required=True, help="MAC address, for example 24:0a:c4:00:00:01")
    parser.add_argument("--chip", default="esp32")
    parser.add_argument("--netns", type=Path, help="network namespace of the application")
    parser.add_argument("--pace", action="store_true", help="bytes take their time, as the baud rate says")
    parser.add_argument("--log", type=Path, help="append what the board does to this file")
    parser.add_argument("--lifeline-fd", type=int, help="stop when this descriptor reaches its end")
    return parser.parse_args(argv)


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


async def serve(arguments: argparse.Namespace) -> None:
    """Run the board until a signal or the end of the lifeline."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if arguments.lifeline_fd is not None:
        loop.add_reader(arguments.lifeline_fd, _watch_lifeline, arguments.lifeline_fd, stop)
    chip = chips.by_name(arguments.chip)
    config = BoardConfig(arguments.id, chip, parse_mac(arguments.mac), arguments.netns, arguments.pace)
    log = open_log(arguments.log, arguments.id)
    listener = open_listener(arguments)
    board = Board(config, NorFlash(arguments.flash, chip.flash_bytes), log)
    uart, control = UartServer(board, listener, log), ControlServer(board, arguments.control)
    try:
        await uart.start()
        await control.start()
        board.power_on()
        address, port = listener.getsockname()[:2]
        print(f"{arguments.id} rfc2217://{address}:{port} {arguments.control}", flush=True)
        await stop.wait()
    finally:
        control.close()
        uart.close()
        board.close()


def _watch_lifeline(fd: int, stop: asyncio.Event) -> None:
    if not os.read(fd, 1024):
        asyncio.get_running_loop().remove_reader(fd)
        stop.set()


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    return exit_status(lambda: asyncio.run(serve(arguments)))


if __name__ == "__main__":
    sys.exit(main())
