# SPDX-License-Identifier: Apache-2.0
"""A stand-in for Espressif's QEMU: its command line, chardevs, QMP and strap, and no processor.

It takes the options that are used here and refuses others as QEMU does. The strap decides between the chip's
serial loader, which writes the flash file, and an application that says hello and answers lines:

    echo TEXT    restart    flood BYTES    die TEXT    boots
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import hashlib
import json
import mmap
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from hil.virtual.board import chips
from hil.virtual.board.faults import ActiveFaults
from hil.virtual.board.flash import NorFlash
from hil.virtual.board.flash_commands import LoaderActions
from hil.virtual.board.loader import SerialLoader

VERSION = "9.2.2"
PROGRAMS = {"qemu-system-riscv32": ["esp32c3"], "qemu-system-xtensa": ["esp32", "esp32s3"]}
DOWNLOAD = {"esp32": 0x0F, "esp32c3": 0x02, "esp32s3": 0x07}
EFUSE_DEVICES = {"esp32": "nvram.esp32.efuse"}
EFUSE_BYTES = {"esp32": 124}
FLASH_MIB = (2, 4, 8, 16)
MIB = 1 << 20


def fail(sentence: str) -> NoReturn:
    sys.exit(f"{os.environ['STAND_IN']}: {sentence}")


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=os.environ["STAND_IN"], add_help=False, allow_abbrev=False)
    parser.error = fail  # type: ignore[method-assign, assignment]
    parser.add_argument("-machine")
    for name in ("-m", "-display", "-monitor", "-icount", "-nic", "-serial", "-seed"):
        parser.add_argument(name)
    parser.add_argument("-S", action="store_true")
    for name in ("-drive", "-global", "-chardev", "-mon"):
        parser.add_argument(name, action="append", default=[], dest=name.strip("-"))
    return parser.parse_args(argv)


def pairs(text: str) -> dict[str, str]:
    words = text.replace(",,", "\0").split(",")
    return {key: value.replace("\0", ",") for key, _, value in (word.partition("=") for word in words)}


class SharedFlash(NorFlash):
    """The flash file as QEMU has it: under a lock of its own, which flock(2) does not see."""

    def __init__(self, path: Path) -> None:
        self.path, self.fd = path, os.open(path, os.O_RDWR)
        self.size_bytes = os.fstat(self.fd).st_size
        if self.size_bytes not in [size * MIB for size in FLASH_MIB]:
            fail("Error: only 2, 4, 8, 16 MB flash images are supported")
        try:
            fcntl.lockf(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            fail(f'Failed to get "write" lock\nIs another process using the image [{path}]?')
        self._map = mmap.mmap(self.fd, self.size_bytes)


class Chip:
    """What the machine runs, seen from its UART."""

    def __init__(self, options: argparse.Namespace, *, stopped: bool) -> None:
        self.name = options.machine
        drives = [pairs(drive) for drive in options.drive]
        flash = next((drive["file"] for drive in drives if drive.get("if") == "mtd"), None)
        efuses = {drive["id"]: Path(drive["file"]) for drive in drives if "id" in drive}
        properties = {
            (one["driver"], one["property"]): one["value"] for one in map(pairs, getattr(options, "global"))
        }
        if flash is None:
            fail("no flash")
        self.flash = SharedFlash(Path(str(flash)))
        device = EFUSE_DEVICES.get(self.name, "nvram.esp32c3.efuse")
        content = efuses[properties[device, "drive"]].read_bytes()
        if len(content) != EFUSE_BYTES.get(self.name, 1024):
            fail("the eFuse file has a wrong size")
        self.mac = content[0x04:0x0A][::-1] if self.name == "esp32" else content[0x18:0x1E][::-1]
        strap = properties.get((f"{self.name}.gpio", "strap_mode"), "0x08")
        self.download = int(strap, 0) == DOWNLOAD[self.name]
        self.icount, self.nic, self.seed = options.icount, options.nic, options.seed
        self.transmit: Callable[[bytes], None] = lambda _data: None
        self.event: Callable[..., None] = lambda _name, **_data: None
        self.stopped = stopped
        self._booted = False
        self._held = bytearray()
        self._loader: SerialLoader | None = None
        self._line = bytearray()
        self._boots = 0

    def boot(self) -> None:
        if self.stopped:
            return
        self._booted = True
        mode = "0x2 (DOWNLOAD" if self.download else "0x8 (SPI_FAST_FLASH_BOOT"
        self.transmit(f"ESP-ROM:{self.name}\r\nrst:0x1 (POWERON),boot:{mode})\r\n".encode())
        self._loader = None
        if self.download:
            self.transmit(b"waiting for download\r\n")
            actions = LoaderActions(
                transmit=self.transmit,
                baud=lambda: 115200,
                set_baud=lambda _baud: None,
                restart=lambda _download: self.reset(),
                set_watchdog=lambda _runs: None,
                disconnect=lambda: None,
            )
            self._loader = SerialLoader(
                chips.by_name(self.name), self.flash, self.mac, ActiveFaults(), actions
            )
            return
        self._boots += 1
        digest = hashlib.sha256(self.flash.read(0x10000, 0x1000)).hexdigest()[:16]
        mac = self.mac.hex(":")
        self.transmit(f"hello from {mac} app {digest} icount {self.icount} nic {self.nic}\r\n".encode())

    def reset(self) -> None:
        self.event("RESET", guest=True, reason="guest-reset")
        self.boot()

    def receive(self, data: bytes) -> None:
        if self.stopped:
            self._held += data
        elif self._loader:
            self._loader.feed(data)
        else:
            self._line += data
            while b"\n" in self._line:
                line, _, rest = bytes(self._line).partition(b"\n")
                self._line = bytearray(rest)
                self._command(*line.decode().strip().partition(" ")[::2])

    def go_on(self) -> None:
        self.stopped = False
        if not self._booted:
            self.boot()
        held, self._held = bytes(self._held), bytearray()
        self.receive(held)

    def _command(self, name: str, value: str) -> None:
        if name == "restart":
            self.reset()
        elif name == "die":
            fail(value)
        elif name == "flood":
            self.transmit(b"".join(b"%015d\n" % number for number in range(int(value) // 16)))
            self.transmit(b"end of flood\n")
        elif name == "boots":
            self.transmit(f"boots {self._boots}\r\n".encode())
        else:
            self.transmit(f"{value}\r\n".encode())


def chardev(options: argparse.Namespace, name: str) -> dict[str, str]:
    for found in map(pairs, options.chardev):
        if found.get("id") == name:
            return found
    fail(f"chardev '{name}' not found")


async def open_monitor(
    options: argparse.Namespace, name: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a monitor's chardev: a connected socket."""
    return await asyncio.open_connection(sock=socket.socket(fileno=int(chardev(options, name)["fd"])))


async def open_pipe(path: str) -> tuple[asyncio.StreamReader, int]:
    """Open a chardev that is a FIFO each way; the one out blocks, as a guest waits for its UART."""
    reader = asyncio.StreamReader()
    source = os.fdopen(os.open(f"{path}.in", os.O_RDWR), "rb", buffering=0)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, source)
    return reader, os.open(f"{path}.out", os.O_RDWR)


def write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


async def serve_monitor(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, chip: Chip) -> None:
    def say(**message: Any) -> None:
        writer.write(json.dumps(message).encode() + b"\r\n")

    say(QMP={"version": {"qemu": {"major": 9, "minor": 2, "micro": 2}}, "capabilities": []})
    ready = False
    chip.event = lambda name, **data: say(event=name, data=data, timestamp={"seconds": 0, "microseconds": 0})
    while line := await reader.readline():
        request = json.loads(line)
        command, reply = request["execute"], {"id": request["id"]} if "id" in request else {}
        if not ready and command != "qmp_capabilities":
            say(error={"class": "CommandNotFound", "desc": "Expecting capabilities negotiation"}, **reply)
        elif command == "qmp_capabilities":
            ready = True
            say(**{"return": {}}, **reply)
        elif command == "qom-set":
            desc = f"Attempt to set property '{request['arguments']['property']}' after it was realized"
            say(error={"class": "GenericError", "desc": desc}, **reply)
        elif command in ("stop", "cont", "quit", "system_reset", "query-status"):
            say(**{"return": {"running": not chip.stopped} if command == "query-status" else {}}, **reply)
            await carry_out(command, chip, say)
        else:
            say(error={"class": "CommandNotFound", "desc": f"no command {command}"}, **reply)


async def carry_out(command: str, chip: Chip, say: Callable[..., None]) -> None:
    if command == "stop":
        chip.stopped = True
        say(event="STOP")
    elif command == "cont":
        say(event="RESUME")
        chip.go_on()
    elif command == "quit":
        os._exit(0)
    elif command == "system_reset":
        say(event="RESET", data={"guest": False, "reason": "host-qmp-system-reset"})
        chip.boot()


async def run(options: argparse.Namespace) -> None:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    chip = Chip(options, stopped=options.S)
    monitors = [
        asyncio.create_task(serve_monitor(*await open_monitor(options, monitor["chardev"]), chip))
        for monitor in map(pairs, options.mon)
    ]
    kind, _, where = options.serial.partition(":")
    if kind == "file":
        with Path(where).open("wb", buffering=0) as file:
            chip.transmit = file.write  # type: ignore[assignment]
            chip.boot()
            await asyncio.Event().wait()
    reader, output = await open_pipe(chardev(options, where)["path"])
    chip.transmit = lambda data: write_all(output, data)
    chip.boot()
    while data := await reader.read(4096):
        chip.receive(data)
    await asyncio.gather(*monitors)


def main() -> None:
    program = os.environ["STAND_IN"]
    argv = sys.argv[1:]
    if argv == ["--version"]:
        print(f"QEMU emulator version {VERSION} (esp_develop_9.2.2_20250817)")
        return
    options = parse(argv)
    if options.machine == "help":
        print("Supported machines are:")
        for machine in PROGRAMS[program]:
            print(f"{machine:<20} Espressif {machine.upper()} machine")
        print("none                 empty machine")
        return
    if options.machine not in PROGRAMS[program]:
        fail(f"unsupported machine type\nUse -machine help to list supported machines: {options.machine}")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run(options))


def install(folder: Path, program: str = "qemu-system-riscv32") -> Path:
    """Write a program called like QEMU to ``folder``, which runs this module; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / program
    root = Path(__file__).resolve().parents[2]
    path.write_text(
        f"#!/bin/sh\nSTAND_IN={program} PYTHONPATH={root} "
        f'exec {sys.executable} {Path(__file__).resolve()} "$@"\n'
    )
    path.chmod(0o755)
    return path


if __name__ == "__main__":
    main()
