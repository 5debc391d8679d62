"""How a serial client tells one chip from another.

Source: esptool 5.6.0, ``cmds.detect_chip`` and ``loader.get_security_info``: first command 0x14, whose answer
names the chip since the ESP32-C3, then a word of the ROM. Magic words of the newer chips: esptool 4.8.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

MAGIC_REGISTER = 0x40001000

_SECURITY = struct.Struct("<IB7B")
_CHIP = struct.Struct("<II")
# No flag set, nothing encrypted, no key in any block; the seventh purpose is as chips answer it.
_SECURITY_INFO = _SECURITY.pack(0, 0, 0, 0, 0, 0, 0, 0, 12)
_API_VERSION = 0


@dataclass(frozen=True)
class Detection:
    """``magic`` is the word at MAGIC_REGISTER; ``security_info`` is None where the command is unknown."""

    magic: int
    security_info: bytes | None = None


def _with_chip_id(magic: int, chip_id: int) -> Detection:
    return Detection(magic, _SECURITY_INFO + _CHIP.pack(chip_id, _API_VERSION))


DETECTIONS = {
    "esp8266": Detection(0xFFF0C101),
    "esp32": Detection(0x00F01D83),
    "esp32s2": Detection(0x000007C6, _SECURITY_INFO),
    "esp32s3": _with_chip_id(0x00000009, 9),
    "esp32c3": _with_chip_id(0x1B31506F, 5),
}
