# SPDX-License-Identifier: Apache-2.0
"""The serial loader's commands that write, erase and read flash, as ROM and stub answer them.

What the parts of the serial loader share: error codes, the wire, and what lies outside of the loader.

Source of the codes: esptool documentation, "Serial Protocol".
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hil.virtual.board.faults import ActiveFaults
from hil.virtual.board.flash import NorFlash

ROM_INVALID_MESSAGE, ROM_FAILED, ROM_INVALID_CRC, ROM_DEFLATE_ERROR = 0x05, 0x06, 0x07, 0x0B
STUB_BAD_LENGTH, STUB_BAD_CHECKSUM, STUB_NOT_IN_FLASH_MODE = 0xC0, 0xC1, 0xC6
STUB_FAILED_FLASH, STUB_INFLATE_ERROR, STUB_NOT_IMPLEMENTED = 0xC4, 0xC7, 0xFF


class CommandError(Exception):
    """A command fails: the code that the ROM and the one that the stub answers."""

    def __init__(self, rom: int, stub: int) -> None:
        super().__init__(f"rom {rom:#x} stub {stub:#x}")
        self.rom, self.stub = rom, stub


@dataclass(frozen=True)
class LoaderActions:
    """What the loader does outside of itself; ``restart`` is told whether the straps still say download.

    ``set_watchdog`` says after each write of registers whether the RTC watchdog runs; its bite lets the chip
    sample its straps again.
    """

    transmit: Callable[[bytes], None]
    baud: Callable[[], int]
    set_baud: Callable[[int], None]
    restart: Callable[[bool], None]
    set_watchdog: Callable[[bool], None]
    disconnect: Callable[[], None]


class LoaderLink(Protocol):
    """The loader's side of the wire; ``stub`` says who is talking."""

    stub: bool
    actions: LoaderActions

    def reply(self, value: int = 0, data: bytes = b"") -> None: ...
    def send(self, packet: bytes) -> None: ...


_SLOW_READ_BYTES = 64
_U32, _2U32, _4U32 = struct.Struct("<I"), struct.Struct("<2I"), struct.Struct("<4I")


@dataclass
class _FlashRead:
    """A stub read in progress: at most ``window`` blocks are sent ahead of the acknowledgement."""

    offset: int
    length: int
    block_bytes: int
    window: int
    sent: int = 0


class FlashCommands:
    """What a client does to flash through one entry into download mode."""

    def __init__(self, flash: NorFlash, faults: ActiveFaults, link: LoaderLink) -> None:
        self._flash, self._faults, self._link = flash, faults, link
        self._write_at: int | None = None
        self._inflate: zlib._Decompress | None = None
        self._reading: _FlashRead | None = None
        self.blocks_written = 0

    @property
    def is_reading(self) -> bool:
        """Whether a stub read waits for its next acknowledgement."""
        return self._reading is not None

    def flash_begin(self, data: bytes) -> None:
        size, _blocks, _block_bytes, offset = _4U32.unpack_from(data)
        if size:
            self._flash.erase(offset, size)
        self._write_at, self._inflate = offset, None
        self._link.reply()

    def deflate_begin(self, data: bytes) -> None:
        size, _blocks, _block_bytes, offset = _4U32.unpack_from(data)
        self._flash.erase(offset, min(size, self._flash.size_bytes - offset))
        self._write_at, self._inflate = offset, zlib.decompressobj()
        self._link.reply()

    def flash_data(self, data: bytes) -> None:
        self._write_block(data[16:])

    def deflate_data(self, data: bytes) -> None:
        if self._inflate is None:
            raise CommandError(ROM_FAILED, STUB_NOT_IN_FLASH_MODE)
        try:
            block = self._inflate.decompress(data[16:])
        except zlib.error:
            raise CommandError(ROM_DEFLATE_ERROR, STUB_INFLATE_ERROR) from None
        self._write_block(block)

    def _write_block(self, block: bytes) -> None:
        if self._write_at is None:
            raise CommandError(ROM_FAILED, STUB_NOT_IN_FLASH_MODE)
        if self._faults.count_down("disconnect") or self._faults.get("disconnect") == "always":
            self._link.actions.disconnect()
            return
        if "write_error" in self._faults:
            raise CommandError(ROM_FAILED, STUB_FAILED_FLASH)
        # esptool pads the last block with 0xFF, which may reach beyond the end of the flash
        block = block[: self._flash.size_bytes - self._write_at]
        self._flash.program(self._write_at, block)
        if block and "bad_md5" in self._faults:
            self._flash.damage(self._write_at)
        self._write_at += len(block)
        self.blocks_written += 1
        self._link.reply()

    def flash_end(self, data: bytes) -> None:
        (stay,) = _U32.unpack_from(data)
        self._write_at = self._inflate = None
        self._link.reply()
        if not stay:
            self._link.actions.restart(True)
        elif not self._link.stub:
            self._link.actions.restart(False)  # the ROM's "run user code"

    def run(self, _data: bytes) -> None:
        self._link.actions.restart(False)

    def erase_flash(self, _data: bytes) -> None:
        self._flash.erase(0, self._flash.size_bytes)
        self._link.reply()

    def erase_region(self, data: bytes) -> None:
        self._flash.erase(*_2U32.unpack(data))
        self._link.reply()

    # reading

    def md5(self, data: bytes) -> None:
        offset, size = _2U32.unpack_from(data)
        digest = hashlib.md5(self._flash.read(offset, size), usedforsecurity=False)
        self._link.reply(data=digest.digest() if self._link.stub else digest.hexdigest().encode())

    def read_flash_slow(self, data: bytes) -> None:
        offset, size = _2U32.unpack(data)
        self._link.reply(
            data=self._flash.read(offset, min(size, _SLOW_READ_BYTES)).ljust(_SLOW_READ_BYTES, b"\0")
        )

    def read_flash(self, data: bytes) -> None:
        offset, length, block_bytes, window = _4U32.unpack(data)
        self._flash.read(offset, length)
        self._link.reply()
        self._reading = _FlashRead(offset, length, block_bytes, window)
        self.continue_read(0)

    def continue_read(self, acknowledged: int) -> None:
        read = self._reading
        assert read is not None
        acknowledged = min(acknowledged, read.sent)  # more than was sent is nonsense, and would never end
        while read.sent < read.length and read.sent - acknowledged < read.window * read.block_bytes:
            count = min(read.block_bytes, read.length - read.sent)
            self._link.send(self._flash.read(read.offset + read.sent, count))
            read.sent += count
        if acknowledged >= read.length:
            self._reading = None
            whole = self._flash.read(read.offset, read.length)
            self._link.send(hashlib.md5(whole, usedforsecurity=False).digest())
