# SPDX-License-Identifier: Apache-2.0
"""Flashing: one build, or two builds side by side in OTA slots."""

from hil.boards.flash.slots import SlotFlasher, why_not_side_by_side
from hil.boards.flash.tool import FLASH_TIMEOUT_S, FlashResult, erase, flash

__all__ = [
    "FLASH_TIMEOUT_S",
    "FlashResult",
    "SlotFlasher",
    "erase",
    "flash",
    "why_not_side_by_side",
]
