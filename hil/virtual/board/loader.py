# SPDX-License-Identifier: Apache-2.0
"""A chip's serial loader in ROM and esptool's flasher stub, as seen from the wire.

Source: esptool documentation, "Serial Protocol", and esptool 5.6.0's own client (``esptool/loader.py``).
The stub that is uploaded is not run: from the moment that it would say ``OHAI`` the loader answers as it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from hil.boards.firmware.app_image import xor_bytes
from hil.virtual.board import slip
from hil.virtual.board.chip import DETECTIONS, MAGIC_REGISTER, Detection, VirtualChip
from hil.virtual.board.faults import ActiveFaults
from hil.virtual.board.flash import FlashRangeError, NorFlash
from hil.virtual.board.flash_commands import (
    ROM_FAILED,
    ROM_INVALID_CRC,
    ROM_INVALID_MESSAGE,
    STUB_BAD_CHECKSUM,
    STUB_BAD_LENGTH,
    STUB_FAILED_FLASH,
    STUB_NOT_IMPLEMENTED,
    CommandError,
    FlashCommands,
    LoaderActions,
)

# What a raw SPI flash command reads back: three status registers, and the signature of the SFDP table.
_FLASH_REPLIES = {0x05: 0, 0x35: 0, 0x15: 0, 0x5A: int.from_bytes(b"SFDP", "little")}
_READ_JEDEC_ID = 0x9F


class Registers:
    """Register values since reset; writing the SPI controller's start bit runs a flash command.

    ``detection`` says which chip's detection word to answer.
    """

    def __init__(self, chip: VirtualChip, mac: bytes, detection: Detection) -> None:
        self._chip = chip
        self._values = {**chip.registers, **chip.mac_registers(mac), MAGIC_REGISTER: detection.magic}
        self._flash_replies = {**_FLASH_REPLIES, _READ_JEDEC_ID: chip.flash_jedec_id}

    def read(self, address: int, *, uart_baud: int) -> int:
        """Return the register's value; one that nobody has written or described reads as 0."""
        if address == self._chip.uart_divider_register:
            return self._chip.crystal_hz // uart_baud
        return self._values.get(address, 0)

    def write(self, address: int, value: int, mask: int) -> None:
        """Set the bits of ``mask`` to those of ``value``; a locked watchdog register keeps what it has."""
        if self._is_locked(address):
            return
        self._values[address] = (self._values.get(address, 0) & ~mask) | (value & mask)
        spi = self._chip.spi
        if address == spi.command and value & spi.start_bit:
            command = self._values.get(spi.user2, 0) & 0xFF
            self._values[spi.data0] = self._flash_replies.get(command, 0)
            self._values[spi.command] &= ~spi.start_bit

    def _is_locked(self, address: int) -> bool:
        watchdog = self._chip.rtc_watchdog
        if watchdog is None or address not in (watchdog.config0, watchdog.config1):
            return False
        return self._values.get(watchdog.protect) != watchdog.key

    @property
    def watchdog_runs(self) -> bool:
        """Whether the RTC watchdog is on; nobody feeds it in the serial loader."""
        watchdog = self._chip.rtc_watchdog
        return watchdog is not None and bool(self._values.get(watchdog.config0, 0) & watchdog.enable_bit)


ROM_SYNC_VALUE = 0x20120707
_CHECKSUM_SEED = 0xEF

_HEADER = struct.Struct("<BBHI")
_U32, _2U32, _4U32 = struct.Struct("<I"), struct.Struct("<2I"), struct.Struct("<4I")


class SerialLoader:
    """Answers the packets in what ``feed`` is given. One object per entry into download mode."""

    def __init__(
        self,
        chip: VirtualChip,
        flash: NorFlash,
        mac: bytes,
        faults: ActiveFaults,
        actions: LoaderActions,
    ) -> None:
        self._faults, self.actions = faults, actions
        self._slip = slip.Decoder()
        wrong_chip = faults.get("wrong_chip")
        self._detection = DETECTIONS[wrong_chip] if wrong_chip else chip.detection
        if "other_mac" in faults:
            mac = mac[:-1] + bytes([mac[-1] ^ 0xFF])
        self._registers = Registers(chip, mac, self._detection)
        self._flash = FlashCommands(flash, faults, self)
        self.stub = False
        self.synced = False
        self._commands: dict[int, Callable[[bytes], None]] = {
            0x02: self._flash.flash_begin,
            0x03: self._flash.flash_data,
            0x04: self._flash.flash_end,
            0x05: self._acknowledge,
            0x06: self._mem_end,
            0x07: self._acknowledge,
            0x08: self._sync,
            0x09: self._write_register,
            0x0A: self._read_register,
            0x0B: self._acknowledge,
            0x0D: self._acknowledge,
            0x0F: self._change_baud,
            0x10: self._flash.deflate_begin,
            0x11: self._flash.deflate_data,
            0x12: self._flash.flash_end,
            0x13: self._flash.md5,
            0x14: self._security_info,
        }
        self._op = 0

    @property
    def blocks_written(self) -> int:
        return self._flash.blocks_written

    def feed(self, data: bytes) -> None:
        for packet in self._slip.feed(data):
            if "no_sync" not in self._faults:
                self._handle(packet)

    # packets

    def _handle(self, packet: bytes) -> None:
        if self._flash.is_reading and len(packet) == _U32.size:
            self._flash.continue_read(_U32.unpack(packet)[0])
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
            self.reply(error=CommandError(ROM_INVALID_MESSAGE, STUB_BAD_LENGTH))
        except FlashRangeError:
            self.reply(error=CommandError(ROM_FAILED, STUB_FAILED_FLASH))
        except CommandError as error:
            self.reply(error=error)

    def _command(self, op: int) -> Callable[[bytes], None]:
        stub_only = {
            0xD0: self._flash.erase_flash,
            0xD1: self._flash.erase_region,
            0xD2: self._flash.read_flash,
            0xD3: self._flash.run,
        }
        rom_only = {0x0E: self._flash.read_flash_slow}
        command = self._commands.get(op) or (stub_only if self.stub else rom_only).get(op)
        if command is None:
            raise CommandError(ROM_INVALID_MESSAGE, STUB_NOT_IMPLEMENTED)
        return command

    def reply(self, value: int = 0, data: bytes = b"", error: CommandError | None = None) -> None:
        """Answer the command at hand."""
        code = 0 if error is None else error.stub if self.stub else error.rom
        status = bytes((1 if error else 0, code)) + (b"" if self.stub else b"\0\0")
        body = data + status
        self.send(_HEADER.pack(1, self._op, len(body), value & 0xFFFFFFFF) + body)

    def send(self, packet: bytes) -> None:
        """Send a packet that is no command's answer, or is one already."""
        self.actions.transmit(slip.encode(packet))

    # connection

    def _sync(self, _data: bytes) -> None:
        self.synced = True
        for _ in range(8):
            self.reply(0 if self.stub else ROM_SYNC_VALUE)

    def _change_baud(self, data: bytes) -> None:
        new, _old = _2U32.unpack(data)
        if not new:
            raise CommandError(ROM_FAILED, STUB_NOT_IMPLEMENTED)
        self.reply()
        self.actions.set_baud(new)

    def _acknowledge(self, _data: bytes) -> None:
        self.reply()  # MEM_BEGIN, MEM_DATA, SPI_SET_PARAMS, SPI_ATTACH: nothing to do but to say yes

    def _mem_end(self, data: bytes) -> None:
        _stay, entry = _2U32.unpack(data)
        self.reply()
        if entry and "no_stub" not in self._faults:
            self.stub = True
            self.send(b"OHAI")

    def _security_info(self, _data: bytes) -> None:
        if self._detection.security_info is None:
            raise CommandError(ROM_INVALID_MESSAGE, STUB_NOT_IMPLEMENTED)
        self.reply(data=self._detection.security_info)

    # registers

    def _read_register(self, data: bytes) -> None:
        (address,) = _U32.unpack(data)
        self.reply(self._registers.read(address, uart_baud=self.actions.baud()))

    def _write_register(self, data: bytes) -> None:
        for address, value, mask, _delay_us in _4U32.iter_unpack(data):
            self._registers.write(address, value, mask)
        self.reply()
        self.actions.set_watchdog(self._registers.watchdog_runs)


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
