"""What a chip answers to esptool and prints from its ROM, as data. One module per chip describes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hil.base.chips import CORES
from hil.virtual.board.architecture import Architecture
from hil.virtual.board.detection import Detection
from hil.virtual.board.resets import Cause


@dataclass(frozen=True)
class SpiRegisters:
    """The SPI flash controller's registers that esptool drives to send a raw flash command."""

    command: int
    start_bit: int
    user2: int
    data0: int


@dataclass(frozen=True)
class RtcWatchdog:
    """The RTC watchdog's registers; the two of its configuration are written only while ``protect`` holds
    ``key``."""

    config0: int
    config1: int
    enable_bit: int
    protect: int
    key: int


@dataclass(frozen=True)
class Rom:
    """What the ROM prints. ``flash_boot`` and ``download_boot`` follow ``boot:``, ``resets`` follow ``rst:``.

    ``chip_check`` is where the ROM refuses another chip's bootloader; empty: it does not look.
    """

    banner: str
    flash_boot: str
    download_boot: str
    resets: Mapping[Cause, str]
    spi_lines: tuple[str, ...]
    length_format: str = "#x"
    prints_saved_pc: bool = True
    chip_check: str = ""


@dataclass(frozen=True)
class Bootloader:
    """What the second stage prints of its chip; ``efuse_revision`` is empty where it does not say."""

    speed_label: str
    flash_mhz: int
    efuse_revision: str = ""


@dataclass(frozen=True)
class Chip:
    """One chip: its register values, its ROM's texts and its memory map."""

    name: str
    image_chip_id: int
    bootloader_offset: int
    revision: str
    architecture: Architecture
    detection: Detection
    rom: Rom
    bootloader: Bootloader
    crystal_hz: int
    uart_divider_register: int
    spi: SpiRegisters
    flash_jedec_id: int
    flash_bytes: int
    registers: Mapping[int, int]
    mac_registers: Callable[[bytes], Mapping[int, int]]
    mapped_ranges: tuple[tuple[int, int], ...]
    rtc_watchdog: RtcWatchdog | None = None

    @property
    def cores(self) -> int:
        return CORES[self.name]

    def is_mapped(self, address: int) -> bool:
        """Return whether the bootloader maps this address to flash instead of loading it to RAM."""
        return any(start <= address < end for start, end in self.mapped_ranges)


def mac_words(mac: bytes) -> tuple[int, int]:
    """Return the two words in which every chip's eFuses keep the MAC address: last four bytes, first two."""
    return int.from_bytes(mac[2:], "big"), int.from_bytes(mac[:2], "big")
