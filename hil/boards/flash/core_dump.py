# SPDX-License-Identifier: Apache-2.0
"""Fetch the core dump that a crash left in a board's flash, and have it read once only.

Its partition is found in the table that was flashed. A run empties it with each image that it writes, so what
is there is of that image.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hil.base.errors import HilError
from hil.boards.firmware.core_dump import decode_core_dump, keeps_core_dumps, length_of, partition_in
from hil.boards.firmware.otadata import SECTOR_BYTES
from hil.boards.flash.tool import ask, table_of
from hil.boards.rack import Board
from hil.session.trouble import Decoded


def decode_kept_dump(board: Board, build_dir: Path, *, console_log: Path, log: Path) -> Decoded | None:
    """Return what the core dump in a board's flash tells; None where there is none. Nobody may have its port.

    Whatever fails is said in the way out; nothing is raised, as that would hide the crash.
    """
    try:
        dump = _fetch(board, build_dir, log)
    except HilError as error:
        return Decoded("", f"its core dump could not be fetched: {error.sentence}")
    return decode_core_dump(dump, build_dir, console_log) if dump else None


def _fetch(board: Board, build_dir: Path, log: Path) -> bytes:
    """Return the core dump in a board's flash, and erase it; b"" where there is none. Raises HilError."""
    partition = partition_in(table_of(build_dir))
    if partition is None or not keeps_core_dumps(build_dir):
        return b""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dump.bin"

        def read(size: int) -> bytes:
            words = ["read-flash", f"{partition.offset:#x}", f"{size:#x}", str(path)]
            ask(board, words, doing="reading the core dump of", log=log)
            return path.read_bytes()

        dump = read(min(SECTOR_BYTES, partition.size_bytes))
        length = length_of(dump)
        if not length or length > partition.size_bytes:
            return b""
        if length > len(dump):
            dump = read(-(-length // SECTOR_BYTES) * SECTOR_BYTES)
    erased = ["erase-region", f"{partition.offset:#x}", f"{SECTOR_BYTES:#x}"]
    ask(board, erased, doing="erasing the core dump of", log=log)
    return dump[:length]
