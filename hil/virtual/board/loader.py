"""The ESP32's serial loader in ROM and esptool's flasher stub, as seen from the wire.

Source: esptool documentation, "Serial Protocol", and esptool 5.6.0's own client (``esptool/loader.py``).
The stub that is uploaded is not run: from the moment that it would say ``OHAI`` the loader answers as it.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from hil.virtual.app_image import xor_bytes
from hil.virtual.board import slip
from hil.virtual.board.chip import Chip
from hil.virtual.board.faults import ActiveFaults
from hil.virtual.board.flash import FlashRangeError, NorFlash
from hil.virtual.board.registers import Registers

ROM_SYNC_VALUE = 0x20120707
_CHECKSUM_SEED = 0xEF
_SLOW_READ_BYTES = 64

ROM_INVALID_MESSAGE, ROM_FAILED, ROM_INVALID_CRC, ROM_DEFLATE_ERROR = 0x05, 0x06, 0x07, 0x0B
STUB_BAD_LENGTH, STUB_BAD_CHECKSUM, STUB_NOT_IN_FLASH_MODE = 0xC0, 0xC1, 0xC6
STUB_FAILED_FLASH, STUB_INFLATE_ERROR, STUB_NOT_IMPLEMENTED = 0xC4, 0xC7, 0xFF

_HEADER = struct.Struct("<BBHI")
_U32, _2U32, _4U32 = struct.Struct("<I"), struct.Struct("<2I"), struct.Struct("<4I")


@dataclass(frozen=True)
class LoaderActions:
    """What the loader does outside of itself; ``restart`` is told whether the straps still say download."""

    transmit: Callable[[bytes], None]
    baud: Callable[[], int]
    set_baud: Callable[[int], None]
    restart: Callable[[bool], None]
    disconnect: Callable[[], None]


class CommandError(Exception):
    """A command fails: the code that the ROM and the one that the stub answers."""

    def __init__(self, rom: int, stub: int) -> None:
        super().__init__(f"rom {rom:#x} stub {stub:#x}")
        self.rom, self.stub = rom, stub


@dataclass
class _FlashRead:
    """A stub read in progress: at most ``window`` blocks are sent ahead of the acknowledgement."""

    offset: int
    length: int
    block_bytes: int
    window: int
    sent: int = 0
    acknowledged: int = 0


class SerialLoader:
    """Answers the packets in what ``feed`` is given. One object per entry into download mode."""

    def __init__(
        self, chip: Chip, flash: NorFlash, mac: bytes, faults: ActiveFaults, actions: LoaderActions
    ) -> None:
        self._flash, self._faults, self._actions = flash, faults, actions
        self._slip = slip.Decoder()
        self._registers = Registers(chip, mac, magic_of=faults.get("wrong_chip"))
        self._write_at: int | None = None
        self._inflate: zlib._Decompress | None = None
        self._reading: _FlashRead | None = None
        self.stub = False
        self.synced = False
        self.blocks_written = 0
        self._commands: dict[int, Callable[[bytes], None]] = {
            0x02: self._flash_begin,
            0x03: self._flash_data,
            0x04: self._flash_end,
            0x05: self._acknowledge,
            0x06: self._mem_end,
            0x07: self._acknowledge,
            0x08: self._sync,
            0x09: self._write_register,
            0x0A: self._read_register,
            0x0B: self._acknowledge,
            0x0D: self._acknowledge,
            0x0F: self._change_baud,
            0x10: self._deflate_begin,
            0x11: self._deflate_data,
            0x12: self._flash_end,
            0x13: self._md5,
        }
        self._op = 0

    def feed(self, data: bytes) -> None:
        for packet in self._slip.feed(data):
            if "no_sync" not in self._faults:
                self._handle(packet)

    # packets

    def _handle(self, packet: bytes) -> None:
        if self._reading and len(packet) == _U32.size:
            self._continue_read(_U32.unpack(packet)[0])
            return
        if len(packet) < _HEADER.size or packet[0] != 0:
            return
        _, self._op, length, checksum = _HEADER.unpack_from(packet)
        data = packet[_HEADER.size :]
        try:
            _check_length(data, length)
            if self._op in (0x03, 0x07, 0x11):
                _check_block(data, checksum)
            self._command(self._op)(data)
        except struct.error:
            self._reply(error=CommandError(ROM_INVALID_MESSAGE, STUB_BAD_LENGTH))
        except FlashRangeError:
            self._reply(error=CommandError(ROM_FAILED, STUB_FAILED_FLASH))
        except CommandError as error:
            self._reply(error=error)

    def _command(self, op: int) -> Callable[[bytes], None]:
        stub_only = {
            0xD0: self._erase_flash,
            0xD1: self._erase_region,
            0xD2: self._read_flash,
            0xD3: self._run,
        }
        rom_only = {0x0E: self._read_flash_slow}
        command = self._commands.get(op) or (stub_only if self.stub else rom_only).get(op)
        if command is None:
            raise CommandError(ROM_INVALID_MESSAGE, STUB_NOT_IMPLEMENTED)
        return command

    def _reply(self, value: int = 0, data: bytes = b"", error: CommandError | None = None) -> None:
        code = 0 if error is None else error.stub if self.stub else error.rom
        status = bytes((1 if error else 0, code)) + (b"" if self.stub else b"\0\0")
        body = data + status
        self._send(_HEADER.pack(1, self._op, len(body), value & 0xFFFFFFFF) + body)

    def _send(self, packet: bytes) -> None:
        self._actions.transmit(slip.encode(packet))

    # connection

    def _sync(self, _data: bytes) -> None:
        self.synced = True
        for _ in range(8):
            self._reply(0 if self.stub else ROM_SYNC_VALUE)

    def _change_baud(self, data: bytes) -> None:
        new, _old = _2U32.unpack(data)
        if not new:
            raise CommandError(ROM_FAILED, STUB_NOT_IMPLEMENTED)
        self._reply()
        self._actions.set_baud(new)

    def _acknowledge(self, _data: bytes) -> None:
        self._reply()  # MEM_BEGIN, MEM_DATA, SPI_SET_PARAMS, SPI_ATTACH: nothing to do but to say yes

    def _mem_end(self, data: bytes) -> None:
        _stay, entry = _2U32.unpack(data)
        self._reply()
        if entry and "no_stub" not in self._faults:
            self.stub = True
            self._send(b"OHAI")

    # registers

    def _read_register(self, data: bytes) -> None:
        (address,) = _U32.unpack(data)
        self._reply(self._registers.read(address, uart_baud=self._actions.baud()))

    def _write_register(self, data: bytes) -> None:
        for address, value, mask, _delay_us in _4U32.iter_unpack(data):
            self._registers.write(address, value, mask)
        self._reply()

    # writing

    def _flash_begin(self, data: bytes) -> None:
        size, _blocks, _block_bytes, offset = _4U32.unpack_from(data)
        if size:
            self._flash.erase(offset, size)
        self._write_at, self._inflate = offset, None
        self._reply()

    def _deflate_begin(self, data: bytes) -> None:
        size, _blocks, _block_bytes, offset = _4U32.unpack_from(data)
        self._flash.erase(offset, min(size, self._flash.size_bytes - offset))
        self._write_at, self._inflate = offset, zlib.decompressobj()
        self._reply()

    def _flash_data(self, data: bytes) -> None:
        self._write_block(data[16:])

    def _deflate_data(self, data: bytes) -> None:
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
            self._actions.disconnect()
            return
        # esptool pads the last block with 0xFF, which may reach beyond the end of the flash
        block = block[: self._flash.size_bytes - self._write_at]
        self._flash.program(self._write_at, block)
        if block and "bad_md5" in self._faults:
            self._flash.damage(self._write_at)
        self._write_at += len(block)
        self.blocks_written += 1
        self._reply()

    def _flash_end(self, data: bytes) -> None:
        (stay,) = _U32.unpack_from(data)
        self._write_at = self._inflate = None
        self._reply()
        if not stay:
            self._actions.restart(True)
        elif not self.stub:
            self._actions.restart(False)  # the ROM's "run user code"

    def _run(self, _data: bytes) -> None:
        self._actions.restart(False)

    def _erase_flash(self, _data: bytes) -> None:
        self._flash.erase(0, self._flash.size_bytes)
        self._reply()

    def _erase_region(self, data: bytes) -> None:
        self._flash.erase(*_2U32.unpack(data))
        self._reply()

    # reading

    def _md5(self, data: bytes) -> None:
        offset, size = _2U32.unpack_from(data)
        digest = hashlib.md5(self._flash.read(offset, size), usedforsecurity=False)
        self._reply(data=digest.digest() if self.stub else digest.hexdigest().encode())

    def _read_flash_slow(self, data: bytes) -> None:
        offset, size = _2U32.unpack(data)
        self._reply(data=self._flash.read(offset, min(size, _SLOW_READ_BYTES)).ljust(_SLOW_READ_BYTES, b"\0"))

    def _read_flash(self, data: bytes) -> None:
        offset, length, block_bytes, window = _4U32.unpack(data)
        self._flash.read(offset, length)
        self._reply()
        self._reading = _FlashRead(offset, length, block_bytes, window)
        self._continue_read(0)

    def _continue_read(self, acknowledged: int) -> None:
        read = self._reading
        assert read is not None
        read.acknowledged = acknowledged
        while read.sent < read.length and read.sent - acknowledged < read.window * read.block_bytes:
            count = min(read.block_bytes, read.length - read.sent)
            self._send(self._flash.read(read.offset + read.sent, count))
            read.sent += count
        if acknowledged >= read.length:
            self._reading = None
            whole = self._flash.read(read.offset, read.length)
            self._send(hashlib.md5(whole, usedforsecurity=False).digest())


def _check_length(data: bytes, length: int) -> None:
    if len(data) != length:
        raise CommandError(ROM_INVALID_MESSAGE, STUB_BAD_LENGTH)


def _check_block(data: bytes, checksum: int) -> None:
    """Check a data command's length and its one-byte checksum. Raises CommandError."""
    (length,) = _U32.unpack_from(data)
    block = data[16:]
    _check_length(block, length)
    if _CHECKSUM_SEED ^ xor_bytes(block) != checksum & 0xFF:
        raise CommandError(ROM_INVALID_CRC, STUB_BAD_CHECKSUM)
