"""Switching faults on and off while a board runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hil.base.errors import ConfigError
from hil.boards.firmware import partition_table
from hil.virtual.board import faults, panic
from hil.virtual.board.machine import Board

# Where a bit is flipped: behind the header, in data that a checksum covers.
_INSIDE_AN_IMAGE = 0x24
_DEFAULT_APP_OFFSET = 0x10000

Effect = Callable[[Board, Any], None]

# What a fault does at the moment it is switched on. The others are looked up where they matter: by the
# loader, and by the board as it boots.
_EFFECTS: Mapping[str, Effect] = {
    "disconnect": lambda board, when: board.disconnect() if when == "now" else None,
    "panic": lambda board, cause: board.crash_app(
        lambda sha: panic.exception(board.config.chip, board.config.chip.architecture.exceptions[cause], sha)
    ),
    "abort": lambda board, _: board.crash_app(lambda sha: panic.abort(board.config.chip, sha)),
    "watchdog": lambda board, which: board.crash_app(
        lambda sha: panic.watchdog(board.config.chip, which, sha, board.uptime_ms())
    ),
    "brownout": lambda board, _: board.brown_out(),
    "garbage": lambda board, _: board.make_noise(),
    "silent": lambda board, _: board.app.freeze(),
    "corrupt_image": lambda board, what: board.flash.damage(_offset_of(board, what)),
}


def inject(board: Board, name: str, value: Any = None) -> None:
    """Switch on the fault ``name``. Raises ConfigError for an unknown name or value."""
    fault, value = faults.check(name, value)
    if fault.lasting and value != "now":
        board.faults.switch_on(name, value)
    effect = _EFFECTS.get(name)
    if effect:
        effect(board, value)


def clear(board: Board) -> None:
    """Switch off every lasting fault; a frozen app goes on. Flash stays as damaged as it is."""
    board.faults.values.clear()
    board.app.thaw()


def _offset_of(board: Board, what: str) -> int:
    """Return the flash offset of a byte whose change breaks ``what`` (see faults.CORRUPTIBLE)."""
    if what == "otadata":
        return _otadata_offset(board)
    start = {
        "app": board.app.info.partition.offset if board.app.info else _DEFAULT_APP_OFFSET,
        "bootloader": board.config.chip.bootloader_offset,
        "partition-table": partition_table.TABLE_OFFSET,
    }[what]
    return start + _INSIDE_AN_IMAGE


def _otadata_offset(board: Board) -> int:
    """Where the entry lies that selects the slot: otadata's first sector, by the table in flash."""
    raw = board.flash.read(partition_table.TABLE_OFFSET, partition_table.TABLE_MAX_BYTES)
    try:
        table = partition_table.from_binary(raw, flash_bytes=board.flash.size_bytes)
    except partition_table.TableError as error:
        raise ConfigError(f"There is no otadata to corrupt: {error}.") from None
    data = partition_table.find_data(table, partition_table.DATA_OTA)
    if data is None:
        raise ConfigError("There is no otadata to corrupt: the partition table in flash has none.")
    return data.offset
