"""The otadata partition in a board's flash; what its entries mean stands in hil.boards.firmware.otadata."""

from __future__ import annotations

from hil.boards.firmware.otadata import ENTRY_BYTES, SECTOR_BYTES, SECTORS, STATE_VALID, Entry, pack, unpack
from hil.boards.firmware.partition_table import Partition
from hil.virtual.board.flash import NorFlash


def read(flash: NorFlash, partition: Partition) -> tuple[Entry, ...]:
    """Read both entries; none where the partition is smaller than two sectors."""
    if partition.size_bytes < SECTORS * SECTOR_BYTES:
        return ()
    offsets = (partition.offset + index * SECTOR_BYTES for index in range(SECTORS))
    return tuple(unpack(flash.read(offset, ENTRY_BYTES)) for offset in offsets)


def write_first(flash: NorFlash, partition: Partition, sequence: int) -> None:
    """Write the first entry, as the bootloader does after it had to guess."""
    flash.erase(partition.offset, SECTOR_BYTES)
    flash.program(partition.offset, pack(sequence, STATE_VALID))
