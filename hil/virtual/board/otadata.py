"""The otadata partition: which OTA slot boots. Two entries, one in each of its sectors.

Source: ``esp_flash_partitions.h`` and ``bootloader_common_loader.c`` of ESP-IDF v5.5.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from hil.virtual.board.flash import SECTOR_BYTES, NorFlash
from hil.virtual.partition_table import Partition

_ENTRY = struct.Struct("<I20sII")
_EMPTY = 0xFFFFFFFF
STATE_VALID, STATE_INVALID, STATE_ABORTED, STATE_UNDEFINED = 2, 3, 4, 0xFFFFFFFF


@dataclass(frozen=True)
class Entry:
    """``sequence`` grows with every update; slot = (sequence - 1) modulo the number of slots."""

    sequence: int
    state: int
    crc: int

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


def read(flash: NorFlash, partition: Partition) -> tuple[Entry, ...]:
    """Read both entries; none where the partition is smaller than two sectors."""
    if partition.size_bytes < 2 * SECTOR_BYTES:
        return ()
    raw = (flash.read(partition.offset + i * SECTOR_BYTES, _ENTRY.size) for i in range(2))
    return tuple(Entry(sequence, state, crc) for sequence, _, state, crc in map(_ENTRY.unpack, raw))


def select(entries: Sequence[Entry], *, slot_count: int) -> int | None:
    """Return the index of the slot to boot, None where no entry is valid."""
    sequences = [entry.sequence for entry in entries if entry.valid]
    return (max(sequences) - 1) % slot_count if sequences else None


def write_first(flash: NorFlash, partition: Partition, sequence: int) -> None:
    """Write the first entry, as the bootloader does after it had to guess."""
    flash.erase(partition.offset, SECTOR_BYTES)
    flash.program(partition.offset, pack(sequence, STATE_VALID))
