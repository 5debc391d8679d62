"""What a chip answers to esptool and prints from its ROM, as data. One module per chip describes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

# CHIP_DETECT_MAGIC_REG: chips older than the ESP32-C3 are told apart by this word of their ROM.
DETECT_MAGIC_REGISTER = 0x40001000
DETECT_MAGIC = {"esp8266": 0xFFF0C101, "esp32": 0x00F01D83, "esp32s2": 0x000007C6}


@dataclass(frozen=True)
class SpiRegisters:
    """The SPI flash controller's registers that esptool drives to send a raw flash command."""

    command: int
    start_bit: int
    user2: int
    data0: int


@dataclass(frozen=True)
class Chip:
    """One chip: its register values, its ROM's texts and its memory map."""

    name: str
    image_chip_id: int
    bootloader_offset: int
    revision: str
    rom_banner: str
    boot_mode_flash: str
    boot_mode_download: str
    boot_mode_code_flash: int
    boot_mode_code_download: int
    crystal_hz: int
    uart_divider_register: int
    spi: SpiRegisters
    flash_jedec_id: int
    flash_bytes: int
    registers: Mapping[int, int]
    mac_registers: Callable[[bytes], Mapping[int, int]]
    mapped_ranges: tuple[tuple[int, int], ...]

    def initial_registers(self, mac: bytes) -> dict[int, int]:
        """Return the registers after reset, the MAC address of this board included."""
        return {
            DETECT_MAGIC_REGISTER: DETECT_MAGIC[self.name],
            **self.registers,
            **self.mac_registers(mac),
        }

    def is_mapped(self, address: int) -> bool:
        """Return whether the bootloader maps this address to flash instead of loading it to RAM."""
        return any(start <= address < end for start, end in self.mapped_ranges)
