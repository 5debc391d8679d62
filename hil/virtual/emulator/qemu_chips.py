# SPDX-License-Identifier: Apache-2.0
"""The chips that Espressif's QEMU emulates, as data.

Sources: ESP-IDF v5.5 ``tools/idf_py_actions/qemu_ext.py`` (machines, straps, eFuse devices and the default
eFuses; the ESP32-S3's eFuse device is called as the ESP32-C3's); ``hw/gpio/esp32_gpio.c`` and
``hw/riscv/esp32c3.c`` of QEMU's fork; the chips' Technical Reference Manuals (eFuse, block 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hil.base.errors import ConfigError
from hil.virtual.board.chips import crc8_dallas


@dataclass(frozen=True)
class EmulatedChip:
    """``program`` runs ``machine``, ESP-IDF installs it as ``package``, ``variable`` names another one.

    ``download_strap`` is what the machine's GPIO_STRAP register holds to enter the serial loader; left alone
    it boots from flash. ``efuses`` makes the content of an eFuse file for a MAC address. ``counts`` says that
    its processor counts its own instructions: RISC-V's ``minstret``, which Xtensa has not.
    """

    name: str
    program: str
    package: str
    variable: str
    machine: tuple[str, ...]
    download_strap: int
    efuse_device: str
    efuses: Callable[[bytes], bytes]
    mac_offset: int
    counts: bool = False

    def mac_of(self, efuses: bytes) -> bytes:
        """Return the MAC address that an eFuse file holds: its last byte first."""
        return efuses[self.mac_offset : self.mac_offset + 6][::-1]

    @property
    def strap_device(self) -> str:
        return f"{self.name}.gpio"

    @property
    def watchdog_device(self) -> str:
        return f"timer.{self.name}.timg"


def _esp32_efuses(mac: bytes) -> bytes:
    """Chip revision 3; block 0 holds the address, its last byte first, and its CRC-8."""
    content = bytearray(124)
    content[0x0D], content[0x16] = 0x80, 0x10
    content[0x04:0x0B] = mac[::-1] + bytes([crc8_dallas(mac)])
    return bytes(content)


def _efuses(mac: bytes) -> bytes:
    """Chip revision 0.3; block 1 holds the address, its last byte first."""
    content = bytearray(1024)
    content[0x26] = 0x0C
    content[0x18:0x1E] = mac[::-1]
    return bytes(content)


_XTENSA = ("qemu-system-xtensa", "qemu-xtensa", "HIL_QEMU_XTENSA")
_RISCV = ("qemu-system-riscv32", "qemu-riscv32", "HIL_QEMU_RISCV32")

CHIPS = {
    chip.name: chip
    for chip in (
        EmulatedChip(
            "esp32",
            *_XTENSA,
            ("-machine", "esp32", "-m", "4M"),
            0x0F,
            "nvram.esp32.efuse",
            _esp32_efuses,
            0x04,
        ),
        EmulatedChip(
            "esp32c3",
            *_RISCV,
            ("-machine", "esp32c3"),
            0x02,
            "nvram.esp32c3.efuse",
            _efuses,
            0x18,
            counts=True,
        ),
        EmulatedChip(
            "esp32s3", *_XTENSA, ("-machine", "esp32s3"), 0x07, "nvram.esp32c3.efuse", _efuses, 0x18
        ),
    )
}


def by_name(name: str) -> EmulatedChip:
    """Return a chip. Raises ConfigError naming those that QEMU emulates."""
    if name not in CHIPS:
        raise ConfigError(
            f"QEMU emulates no {name!r}; it emulates {', '.join(CHIPS)}.",
            next_step="give the board one of these as target, or another kind.",
        )
    return CHIPS[name]
