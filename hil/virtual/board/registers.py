"""The chip's registers as the serial loader's client reads and writes them."""

from __future__ import annotations

from hil.virtual.board.chip import MAGIC_REGISTER, Chip, Detection

# What a raw SPI flash command reads back: three status registers, and the signature of the SFDP table.
_FLASH_REPLIES = {0x05: 0, 0x35: 0, 0x15: 0, 0x5A: int.from_bytes(b"SFDP", "little")}
_READ_JEDEC_ID = 0x9F


class Registers:
    """Register values since reset; writing the SPI controller's start bit runs a flash command.

    ``detection`` says which chip's detection word to answer.
    """

    def __init__(self, chip: Chip, mac: bytes, detection: Detection) -> None:
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
