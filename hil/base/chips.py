# SPDX-License-Identifier: Apache-2.0
"""The chips that firmware is built for and that a rack may hold, as data.

Source: ``soc_caps.h`` of each chip in ESP-IDF v5.5.4; of those with Ethernet of their own ``emac_periph.c``;
where a boot loader lies, ``components/bootloader/Kconfig.projbuild``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Chip:
    """``rmii_clocks`` are the GPIOs that carry an Ethernet PHY's 50 MHz, in and out; none without an EMAC.

    ``smi`` are the GPIOs of MDC and MDIO that ESP-IDF gives them. ``is_modelled``: a virtual board can be it.
    ``five_ghz``: its Wi-Fi hears that band, too. ``bootloader`` is where its ROM looks for one in flash.
    """

    name: str
    cores: int
    wifi: bool = True
    rmii_clocks: Mapping[str, tuple[int, ...]] | None = None
    smi: tuple[int, int] = (-1, -1)
    gpio_max: int = 48
    is_modelled: bool = False
    five_ghz: bool = False
    bootloader: int = 0


CHIPS: Mapping[str, Chip] = {
    chip.name: chip
    for chip in (
        Chip(
            "esp32",
            2,
            rmii_clocks={"in": (0,), "out": (0, 16, 17)},
            smi=(23, 18),
            is_modelled=True,
            bootloader=0x1000,
        ),
        Chip("esp32s2", 1, bootloader=0x1000),
        Chip("esp32s3", 2, is_modelled=True),
        Chip("esp32c2", 1),
        Chip("esp32c3", 1, is_modelled=True),
        Chip("esp32c5", 1, five_ghz=True, bootloader=0x2000),
        Chip("esp32c6", 1),
        Chip("esp32h2", 1, wifi=False),
        Chip(
            "esp32p4",
            2,
            wifi=False,
            rmii_clocks={"in": (32, 44, 50), "out": (23, 39)},
            smi=(31, 52),
            gpio_max=54,
            bootloader=0x2000,
        ),
    )
}
MODELLED = tuple(name for name, chip in CHIPS.items() if chip.is_modelled)
