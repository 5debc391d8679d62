"""The chips that the virtual board can be."""

from __future__ import annotations

from hil.base.errors import ConfigError
from hil.virtual.board.chip import Chip
from hil.virtual.board.esp32 import ESP32
from hil.virtual.board.esp32c3 import ESP32C3
from hil.virtual.board.esp32s3 import ESP32S3

CHIPS = {chip.name: chip for chip in (ESP32, ESP32S3, ESP32C3)}


def by_name(name: str) -> Chip:
    """Return the chip called ``name``. Raises ConfigError listing the chips that can be emulated."""
    if name not in CHIPS:
        raise ConfigError(f"The virtual board cannot be a {name!r}; it can be: {', '.join(CHIPS)}.")
    return CHIPS[name]
