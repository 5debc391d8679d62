# SPDX-License-Identifier: Apache-2.0
"""Why a chip was reset, by the number in its ROM's line: ``rst:0xc (SW_CPU_RESET),boot:0x13 …``.

Source: ESP-IDF v5.5.4, ``RESET_REASON`` in components/esp_rom/<chip>/include/<chip>/rom/rtc.h and
components/soc/<chip>/include/soc/reset_reasons.h, of each chip in hil/base/chips.py. A number means the
same on every chip, except 0x17. Names differ between chips, and between a chip's ROM and its header. An ESP32
prints 0x1 for a pulse on EN, too, and 0xc after a brownout where its revision is older than v3.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Cause = Literal["outside", "glitch", "brownout", "sleep", "program"]

_CAUSES: Mapping[int, Cause] = {
    0x01: "outside",  # power came, or EN was pulsed
    0x03: "program",  # software resets the digital core
    0x04: "program",  # the legacy watchdog of an ESP32
    0x05: "sleep",  # an ESP32-P4 says PMU power down
    0x06: "outside",  # a host over SDIO
    0x07: "program",  # a watchdog
    0x08: "program",  # a watchdog
    0x09: "program",  # a watchdog
    0x0A: "outside",  # intrusion
    0x0B: "program",  # a watchdog
    0x0C: "program",  # software resets the CPU: esp_restart(), and the end of a panic
    0x0D: "program",  # a watchdog
    0x0E: "program",  # an ESP32's first CPU resets the second
    0x0F: "brownout",
    0x10: "program",  # a watchdog
    0x11: "program",  # a watchdog
    0x12: "program",  # a watchdog
    0x13: "glitch",  # of the clock; of the supply on an ESP32-P4
    0x14: "glitch",  # an eFuse that reads wrong
    0x15: "outside",  # USB serial
    0x16: "outside",  # JTAG over USB
    0x17: "glitch",  # of the supply; USB serial on an ESP32-P4
    0x18: "outside",  # JTAG
    0x19: "glitch",
    0x1A: "program",  # the CPU locked up: an exception in the handler of exceptions
    0x1B: "glitch",
}


def cause_of(number: int, name: str) -> Cause:
    """Return the cause behind a ROM's number and name; "program" for a number that no chip of ours has."""
    if number == 0x17 and "USB" in name:
        return "outside"
    return _CAUSES.get(number, "program")
