# SPDX-License-Identifier: Apache-2.0
"""What the otadata partition says: which OTA slot boots. Two entries, one in each of its sectors.

The valid entry with the higher sequence number rules. Source: ``esp_flash_partitions.h`` and
``bootloader_common_loader.c`` of ESP-IDF v5.5.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

SECTOR_BYTES = 0x1000
SECTORS = 2
STATE_NEW, STATE_PENDING_VERIFY, STATE_VALID, STATE_INVALID, STATE_ABORTED = range(5)
STATE_UNDEFINED = 0xFFFFFFFF  # nobody wants it confirmed: it is never rolled back

_ENTRY = struct.Struct("<I20sII")
_EMPTY = 0xFFFFFFFF
ENTRY_BYTES = _ENTRY.size


@dataclass(frozen=True)
class OtadataEntry:
    """``sequence`` grows with every update; slot = (sequence - 1) modulo the number of slots."""

    sequence: int
    state: int
    crc: int

    @property
    def is_initial(self) -> bool:
        """Was never written, or not whole."""
        return self.sequence == _EMPTY or self.crc != sequence_crc(self.sequence)

    @property
    def empty(self) -> bool:
        return self.sequence == _EMPTY or self.state in (STATE_INVALID, STATE_ABORTED)

    @property
    def valid(self) -> bool:
        return not self.empty and self.crc == sequence_crc(self.sequence)


def sequence_crc(sequence: int) -> int:
    """Return the CRC-32 that an entry keeps of its sequence number."""
    return zlib.crc32(sequence.to_bytes(4, "little"), 0xFFFFFFFF)


def pack(sequence: int, state: int = STATE_UNDEFINED) -> bytes:
    """Write one entry as flash holds it."""
    return _ENTRY.pack(sequence, b"\xff" * 20, state, sequence_crc(sequence))


def unpack(raw: bytes) -> OtadataEntry:
    """Read one entry, the first ``ENTRY_BYTES`` of its sector."""
    sequence, _, state, crc = _ENTRY.unpack(raw)
    return OtadataEntry(sequence, state, crc)


def active(entries: Sequence[OtadataEntry]) -> int | None:
    """Return the index of the entry that rules, None where none is valid."""
    valid = [index for index, entry in enumerate(entries) if entry.valid]
    return max(valid, key=lambda index: entries[index].sequence) if valid else None


def select(entries: Sequence[OtadataEntry], *, slot_count: int) -> int | None:
    """Return the index of the slot to boot, None where no entry is valid."""
    ruling = active(entries)
    return None if ruling is None else (entries[ruling].sequence - 1) % slot_count


def sector(sequence: int) -> bytes:
    """Return a whole sector that holds an entry."""
    return pack(sequence).ljust(SECTOR_BYTES, b"\xff")


def next_sequence(after: int, slot: int, *, slot_count: int) -> int:
    """Return the lowest sequence number above ``after`` that boots ``slot``; numbers begin at 1."""
    return after + 1 + (slot - after) % slot_count
