"""What differs from chip to chip in the images that a build folder holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from esptool.targets import CHIP_DEFS

from hil.base.errors import ConfigError

FLASH_SIZE = "4MB"


@dataclass(frozen=True)
class Layout:
    """A chip's image as ESP-IDF v5.5 makes it: load addresses (code that never runs has to lie somewhere
    valid), flash clock, the revisions of chip and eFuse block that the image is for, times 100, and whether
    its cores are RISC-V (else Xtensa)."""

    chip: str
    mapped_address: int
    data_address: int
    code_address: int
    bootloader_code_address: int
    flash_freq: str
    min_revision: int
    max_revision: int
    max_efuse_revision: int
    riscv: bool = False

    @property
    def rom(self) -> Any:
        """esptool's own description of the chip: its id, the bootloader's offset, flash codes."""
        return CHIP_DEFS[self.chip]

    @property
    def flash_settings(self) -> dict[str, str]:
        return {"flash_mode": "dio", "flash_size": FLASH_SIZE, "flash_freq": self.flash_freq}


_LAYOUTS = {
    layout.chip: layout
    for layout in (
        Layout(
            chip="esp32",
            mapped_address=0x3F400020,
            data_address=0x3FFF0030,
            code_address=0x40080000,
            bootloader_code_address=0x40078000,
            flash_freq="40m",
            min_revision=0,
            max_revision=399,
            max_efuse_revision=99,
        ),
        Layout(
            chip="esp32s3",
            mapped_address=0x3C000020,
            data_address=0x3FCE2820,
            code_address=0x40374000,
            bootloader_code_address=0x403C8700,
            flash_freq="80m",
            min_revision=0,
            max_revision=99,
            max_efuse_revision=199,
        ),
        Layout(
            chip="esp32c3",
            mapped_address=0x3C000020,
            data_address=0x3FCD5820,
            code_address=0x40380000,
            bootloader_code_address=0x403CBF10,
            flash_freq="80m",
            min_revision=3,
            max_revision=199,
            max_efuse_revision=199,
            riscv=True,
        ),
    )
}


def layout_of(chip: str) -> Layout:
    """Return a chip's layout. Raises ConfigError listing the chips that have one."""
    if chip not in _LAYOUTS:
        raise ConfigError(f"Images for {chip!r} cannot be made here; they can for: {', '.join(_LAYOUTS)}.")
    return _LAYOUTS[chip]
