"""The chip's registers as the serial loader's client reads and writes them."""

from __future__ import annotations

from hil.virtual.board.chip import DETECT_MAGIC, DETECT_MAGIC_REGISTER, Chip

# What a raw SPI flash command reads back: three status registers, and the signature of the SFDP table.
_FLASH_REPLIES = {0x05: 0, 0x35: 0, 0x15: 0, 0x5A: int.from_bytes(b"SFDP", "little")}
_READ_JEDEC_ID = 0x9F


class Registers:
    """Register values since reset; writing the SPI controller's start bit runs a flash command.

    ``magic_of`` names another chip whose detection word to answer, for a fault.
    """

    def __init__(self, chip: Chip, mac: bytes, *, magic_of: str | None = None) -> None:
        self._chip = chip
        self._values = chip.initial_registers(mac)
        self._flash_replies = {**_FLASH_REPLIES, _READ_JEDEC_ID: chip.flash_jedec_id}
        if magic_of:
            self._values[DETECT_MAGIC_REGISTER] = DETECT_MAGIC[magic_of]

    def read(self, address: int, *, uart_baud: int) -> int:
        """Return the register's value; one that nobody has written or described reads as 0."""
        if address == self._chip.uart_divider_register:
            return self._chip.crystal_hz // uart_baud
        return self._values.get(address, 0)

    def write(self, address: int, value: int, mask: int) -> None:
        """Set the bits of ``mask`` to those of ``value``."""
        self._values[address] = (self._values.get(address, 0) & ~mask) | (value & mask)
        spi = self._chip.spi
        if address == spi.command and value & spi.start_bit:
            command = self._values.get(spi.user2, 0) & 0xFF
            self._values[spi.data0] = self._flash_replies.get(command, 0)
            self._values[spi.command] &= ~spi.start_bit
