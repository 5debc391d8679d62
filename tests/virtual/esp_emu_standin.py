# SPDX-License-Identifier: Apache-2.0
"""A stand-in for Espressif's esp-emu: its flags, sockets, flash and ends, and no processor.

It is written from the README of esp-emu 0.45, not from its driver: a flag, chip or command that is not stated
there, or not known here, is refused. No chip image runs. It plays the host program that an image of ``hil
build --target virtual-…`` carries, or a given program (ELF, or a script that starts with #!), and says so.
Everything between reset and that program is the virtual board's: ROM, boot loader, serial loader.

    python -m tests.virtual.esp_emu_standin --chip esp32c6 --firmware merged.bin

What the README leaves open is decided the hard way, so that nobody relies on it: console output is lost where
no client reads it, a second client of the console is cut off, and --efuse names a file that exists.

It misbehaves on request, by ``ESP_EMU_TRICKS=NAME=VALUE,…``:

    program=PATH    play this program in the place of any image
    version=TEXT    say this version
    die=TEXT        panic, with status 101, when the console has said TEXT
    hang=TEXT       stand still then, deaf to SIGTERM
    err=COMMAND     answer this control command with an error
    lose=STATUS     end by a signal with this status, and save nothing; lose=torn: an empty file
    FAULT=VALUE     a lasting fault of the virtual board (torn_lines=1, garbage=200, …)
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import json
import mmap
import os
import re
import signal
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from hil.base import chips as base_chips
from hil.boards.firmware import app_image
from hil.virtual.board import chips
from hil.virtual.board.boot import App
from hil.virtual.board.chip import DETECTIONS, Detection, RtcWatchdog, VirtualChip
from hil.virtual.board.config import BoardConfig
from hil.virtual.board.faults import FAULTS
from hil.virtual.board.flash import SECTOR_BYTES, FlashRangeError, NorFlash
from hil.virtual.board.machine import VirtualBoard
from hil.virtual.board.panic import PanicText
from hil.virtual.board.reset import PANIC, POWER_ON, SOFTWARE, Reset

VERSION = "0.45.0"
CHIPS = ("esp32c3", "esp32c5", "esp32c6", "esp32h2", "esp32p4", "esp32s3", "esp32s31")
AUTHS = ("wpa2-wpa3", "wpa3-sae", "wpa2-psk", "open", "wpa2-enterprise", "wpa3-enterprise")
EFUSE_BYTES = 336
EFUSE_MAC = slice(0x18, 0x1E)  # first of block 1, behind the 24 bytes of block 0
MIB = 1 << 20
LOOPBACK_MAC = bytes.fromhex("600000000001")
RFC2217 = (b"\xff\xfb\x2c", b"\xff\xfd\x2c")  # WILL and DO COM-PORT-OPTION
TUNSETIFF, TAP_WITHOUT_HEADER = 0x400454CA, 0x1002
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def fail(sentence: str) -> NoReturn:
    print(f"error: {sentence}", file=sys.stderr)
    raise SystemExit(2)


def tricks() -> dict[str, str]:
    words = filter(None, os.environ.get("ESP_EMU_TRICKS", "").split(","))
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def endpoint(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        fail(f"invalid HOST:PORT {text!r}")
    return host, int(port)


def duration(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s)", text)
    if not match:
        fail(f"invalid duration {text!r}: 5s or 500ms")
    return float(match[1]) / (1000 if match[2] == "ms" else 1)


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="esp-emu", add_help=False, allow_abbrev=False)
    parser.error = fail  # type: ignore[method-assign, assignment]
    parser.add_argument("--chip", required=True)
    parser.add_argument("--firmware", required=True, type=Path)
    for name in ("--uart-tcp", "--control-tcp"):
        parser.add_argument(name, type=endpoint)
    for name in ("--efuse", "--elf", "--trace"):
        parser.add_argument(name, type=Path)
    for name in ("--save-state", "--no-panic-intercept"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--timeout", type=duration)
    for name in ("--strap-mode", "--exit-on", "--net", "--gdb"):
        parser.add_argument(name)
    parser.add_argument("--wifi-ssid", default="myssid")
    parser.add_argument("--wifi-password", default="mypassword")
    parser.add_argument("--wifi-auth", default="wpa2-wpa3")
    options = parser.parse_args(argv)
    check(options)
    return options


def check(options: argparse.Namespace) -> None:
    """End with a sentence where a flag's value is none that esp-emu takes, or none that is played here."""
    if options.chip not in CHIPS:
        fail(f"unknown chip {options.chip!r}: one of {', '.join(CHIPS)}")
    if options.chip not in base_chips.CHIPS:
        fail(f"{options.chip} is in bring-up: the stand-in does not play it")
    if options.gdb:
        fail("the stand-in serves no GDB")
    if options.strap_mode not in (None, "0x02"):
        fail(f"unknown strap mode {options.strap_mode!r}: 0x02")
    if options.wifi_auth not in AUTHS:
        fail(f"unknown --wifi-auth {options.wifi_auth!r}: one of {', '.join(AUTHS)}")
    if options.wifi_auth != "open" and not 8 <= len(options.wifi_password) <= 63:
        fail("--wifi-password has 8 to 63 characters")
    check_files(options)


def check_files(options: argparse.Namespace) -> None:
    """End with a sentence where a file is missing or not what its flag takes."""
    if options.trace and not options.elf:
        fail("--trace needs --elf")
    for path in filter(None, (options.firmware, options.efuse, options.elf)):
        if not path.is_file():
            fail(f"cannot read {path}")
    if options.elf and options.elf.read_bytes()[:4] != b"\x7fELF":
        fail(f"{options.elf} is not an ELF file")
    if options.efuse and options.efuse.stat().st_size != EFUSE_BYTES:
        fail(f"{options.efuse} has {options.efuse.stat().st_size} bytes, an eFuse file has {EFUSE_BYTES}")


def open_network(text: str) -> int | None:
    """Check ``--net``; return the descriptor of a tap that is attached, as only one process can have it."""
    kind, *words = text.split(",")
    values = dict(word.partition("=")[::2] for word in words)
    known = {"tap": {"ifname"}, "user": {"restrict", "hostfwd"}}.get(kind)
    if known is None or not values.keys() <= known or (kind == "tap") != ("ifname" in values):
        fail(f"unknown network {text!r}: tap,ifname=NAME or user[,restrict=yes][,hostfwd=…]")
    if kind == "user":
        return None
    name = values["ifname"]
    if not Path(f"/sys/class/net/{name}").exists():
        fail(f"there is no interface {name!r}")
    try:
        tap = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), TAP_WITHOUT_HEADER))
    except OSError as error:
        fail(f"cannot attach to {name}: {error.strerror}")
    return tap


def chip_of(name: str) -> VirtualChip:
    """Return the virtual board's chip, or a C3 with the registers at which esptool looks for another."""
    if name in chips.CHIPS:
        return chips.CHIPS[name]
    from esptool.targets import CHIP_DEFS  # half a second, for the chips that need it

    rom: Any = CHIP_DEFS[name]
    block1 = chips.Block1(base=rom.EFUSE_BASE, major=0, minor=0)
    identity = struct.pack("<II", rom.IMAGE_CHIP_ID, 0)
    security = DETECTIONS["esp32c3"].security_info or b""
    spi, at = rom.SPI_REG_BASE, rom.RTC_CNTL_WDTCONFIG0_REG
    return replace(
        chips.ESP32C3,
        name=name,
        image_chip_id=rom.IMAGE_CHIP_ID,
        revision="v0.0",
        detection=Detection(0, security[: -len(identity)] + identity),
        rom=replace(chips.ESP32C3.rom, banner=f"ESP-ROM:{name}\r\n"),
        uart_divider_register=rom.UART_CLKDIV_REG,
        spi=replace(chips.SPI, command=spi, user2=spi + rom.SPI_USR2_OFFS, data0=spi + rom.SPI_W0_OFFS),
        registers=block1.registers(),
        mac_registers=block1.mac_registers,
        rtc_watchdog=RtcWatchdog(at, at + 4, 1 << 31, rom.RTC_CNTL_WDTWPROTECT_REG, rom.RTC_CNTL_WDT_WKEY),
    )


class ProcessFlash(NorFlash):
    """Flash that lives in this process, as large as the image's header says; without a header as its file."""

    def __init__(self, firmware: Path, header_at: int) -> None:
        image = firmware.read_bytes()
        header = image[header_at : header_at + 4]
        code = header[3] >> 4 if header[:1] == b"\xe9" and len(header) == 4 else None
        self.path, self.size_bytes = firmware, len(image) if code is None else MIB << code
        if self.size_bytes % MIB or not self.size_bytes or len(image) > self.size_bytes:
            fail(f"{firmware} has {len(image)} bytes and no flash size in its header that holds them")
        self.fd = os.memfd_create("flash")
        os.ftruncate(self.fd, self.size_bytes)
        self._map = mmap.mmap(self.fd, self.size_bytes)
        self._map[:] = image.ljust(self.size_bytes, b"\xff")

    def save(self) -> None:
        self.path.write_bytes(self._map[:])


class Board(VirtualBoard):
    """A virtual board that says what it plays for the image that it boots, and tells of a panic."""

    program: Path | None = None
    on_panic: Callable[[], None] | None = None

    def _start_app(self, info: App, reset: Reset) -> None:
        played = self.program.name if self.program else f"the program of {info.description.project}"
        self.cable.transmit(f"esp-emu stand-in: no image runs, {played} is played\r\n".encode())
        super()._start_app(info, reset)

    def _crash(self, crash: PanicText) -> None:
        super()._crash(crash)
        if self.on_panic and crash.reset is PANIC:
            self.on_panic()


class Uart:
    """The console: stdin and stdout, or one TCP client at a time. A raw socket has no rate and no lines."""

    has_room = True

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self.writer: asyncio.StreamWriter | None = None
        self.on_stdio = True

    @property
    def baud(self) -> int:
        return self._emulator.board.cable.chip_baud

    def receive(self, data: bytes) -> None:
        if self.on_stdio:
            os.write(1, data)
        elif self.writer:
            self.writer.write(data)
        self._emulator.said(data)

    def disconnect(self) -> None:
        if self.writer:
            self.writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.writer:
            complain("a second client of the console is cut off")
            writer.transport.abort()
            return
        self.writer = writer
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if data.startswith(RFC2217):
                    complain("a client asks for DTR and RTS (RFC 2217), which a raw socket does not carry")
                    break
                self._emulator.board.cable.receive(data)
        self.writer = None
        writer.close()

    async def serve_stdin(self) -> None:
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
        while line := await reader.readline():
            self._emulator.board.cable.receive(line)


def complain(sentence: str) -> None:
    print(f"esp-emu stand-in: {sentence}", file=sys.stderr, flush=True)


class Control:
    """The control channel's commands: each line is answered by one."""

    def __init__(self, board: Board, asked: dict[str, str]) -> None:
        self._board, self._asked = board, asked
        self._commands: dict[str, Callable[..., None]] = {
            "ping": lambda: None,
            "reset": self._reset,
            "erase-flash": lambda: board.flash.erase(0, board.flash.size_bytes),
            "erase-region": self._erase_region,
            "write-region": self._write_region,
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while (line := await reader.readline()).endswith(b"\n"):
                words = line.decode(errors="replace").split()
                name = words[0] if words else ""
                writer.write(f"{self._answer(name, words[1:])}\n".encode())
        writer.close()

    def _answer(self, name: str, arguments: list[str]) -> str:
        if self._asked.get("err") == name:
            return f"err: {name} fails on request"
        if name not in self._commands:
            return f"err: unknown command {name!r}"
        try:
            self._commands[name](*arguments)
        except (TypeError, ValueError, OSError) as error:  # FlashRangeError is a ValueError
            return f"err: {name}: {error}".replace("\n", " ")
        return "ok"

    def _reset(self, how: str = "") -> None:
        if how not in ("", "--soft"):
            raise ValueError(f"unknown flag {how}")
        self._board._restart(SOFTWARE if how else POWER_ON)

    def _erase_region(self, offset: str, length: str) -> None:
        if int(offset, 0) % SECTOR_BYTES or int(length, 0) % SECTOR_BYTES:
            raise ValueError(f"not whole sectors of {SECTOR_BYTES} bytes")
        self._board.flash.erase(int(offset, 0), int(length, 0))

    def _write_region(self, offset: str, file: str) -> None:
        flash, data = self._board.flash, Path(file).read_bytes()
        if int(offset, 0) + len(data) > flash.size_bytes:
            raise FlashRangeError(f"{len(data)} bytes at {offset} do not lie in the flash")
        flash.erase(int(offset, 0), len(data))
        flash.program(int(offset, 0), data)


class Emulator:
    """The process: a board, its sockets, and how it ends."""

    def __init__(self, options: argparse.Namespace, asked: dict[str, str]) -> None:
        self.options, self._asked = options, asked
        self._efuses = options.efuse.read_bytes() if options.efuse else b""
        self._net = open_network(options.net) if options.net else None
        chip = chip_of(options.chip)
        self.flash = ProcessFlash(options.firmware, chip.bootloader_offset)
        mac = self._efuses[EFUSE_MAC][::-1] if any(self._efuses[EFUSE_MAC]) else LOOPBACK_MAC
        network = (options.wifi_ssid, options.wifi_password)
        self.board = Board(BoardConfig("esp-emu", chip, mac, network=network), self.flash, lambda _text: None)
        if "program" in asked:
            self.board.program = program = Path(asked["program"])
            app_image.unpack_elf = lambda _image: program.read_bytes()  # what the boot loader finds in any
        if options.elf and not options.no_panic_intercept:
            self.board.on_panic = lambda: self.end(1)
        for name in FAULTS.keys() & asked.keys():
            self.board.faults.switch_on(name, int(asked[name]) if asked[name].isdecimal() else True)
        if options.strap_mode:
            self.board.faults.switch_on("download", True)
        self.uart, self._heard = Uart(self), b""
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def said(self, data: bytes) -> None:
        """Act on what the console says: end, die or hang."""
        self._heard = (self._heard + data)[-65536:]
        if self._has_said(self.options.exit_on):
            self.end(0)
        elif self._has_said(self._asked.get("die")):
            print("thread 'main' panicked: on request", file=sys.stderr, flush=True)
            os._exit(101)
        elif self._has_said(self._asked.get("hang")):
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)
            while True:
                time.sleep(60)

    def _has_said(self, text: str | None) -> bool:
        return bool(text) and text.encode() in self._heard

    def end(self, status: int) -> None:
        if not self._ended.done():
            self._ended.set_result(status)

    def _interrupted(self) -> None:
        how = self._asked.get("lose", "")
        if how == "torn":
            self.options.firmware.write_bytes(b"")
        if how:
            os._exit(int(how) if how.isdecimal() else 0)
        self.end(0)

    async def run(self) -> int:
        loop, options = asyncio.get_running_loop(), self.options
        for number in SIGNALS:
            loop.add_signal_handler(number, self._interrupted)
        try:
            if options.uart_tcp:  # first: a test that reaches the control channel may open the console
                self.uart.on_stdio = False
                await asyncio.start_server(self.uart.serve, *options.uart_tcp)
            if options.control_tcp:
                await asyncio.start_server(Control(self.board, self._asked).serve, *options.control_tcp)
        except OSError as error:
            fail(f"cannot listen: {error}")
        self.board.cable.host = self.uart
        stdin = None if options.uart_tcp else asyncio.create_task(self.uart.serve_stdin())
        if options.timeout:
            loop.call_later(options.timeout, self.end, 0)
        self.board.power_on()
        status = await self._ended
        if stdin:
            stdin.cancel()
        self._save()
        return status

    def _save(self) -> None:
        """Write back what a graceful end writes back."""
        self.board.power_off()
        if self.options.save_state:
            self.flash.save()
        if self.options.efuse:
            self.options.efuse.write_bytes(self._efuses)
        if self.options.trace:
            event = {"name": "main", "ph": "X", "ts": 0, "dur": 1, "pid": 1, "tid": 1}
            self.options.trace.write_text(json.dumps({"traceEvents": [event]}))


async def emulate(argv: list[str], asked: dict[str, str]) -> int:
    return await Emulator(parse(argv), asked).run()


def main() -> None:
    asked = tricks()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # asyncio's lets the board boot, and then does not save it
    os._exit(asyncio.run(emulate(sys.argv[1:], asked)))


def install(folder: Path, **asked: object) -> Path:
    """Write a program ``esp-emu`` to ``folder``, which runs this module with these tricks."""
    folder.mkdir(parents=True, exist_ok=True)
    path, root = folder / "esp-emu", Path(__file__).resolve().parents[2]
    words = ",".join(f"{name}={value}" for name, value in asked.items())
    path.write_text(
        f'#!/bin/sh\ntest "$*" = --version && echo "esp-emu {asked.get("version", VERSION)}" && exit\n'
        f"export ESP_EMU_TRICKS='{words}' PYTHONPATH='{root}'\n"
        f'exec {sys.executable} -m {__spec__.name if __spec__ else __name__} "$@"\n'
    )
    path.chmod(0o755)
    return path


if __name__ == "__main__":
    main()
