# SPDX-License-Identifier: Apache-2.0
"""Flashing: one build, or two builds side by side in OTA slots; and what it costs the flash."""

from hil.boards.flash.known import KnownChips, accept
from hil.boards.flash.slots import SlotFlasher, why_not_side_by_side
from hil.boards.flash.tool import DIE_WITH_PARENT, FLASH_TIMEOUT_S, FlashResult, erase, flash
from hil.boards.flash.wear import Wear, WearCounter, read_wear

__all__ = [
    "DIE_WITH_PARENT",
    "FLASH_TIMEOUT_S",
    "FlashResult",
    "KnownChips",
    "SlotFlasher",
    "Wear",
    "WearCounter",
    "accept",
    "erase",
    "flash",
    "read_wear",
    "why_not_side_by_side",
]
