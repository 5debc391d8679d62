# SPDX-License-Identifier: Apache-2.0
"""What was seen of each chip when it was last flashed: a file a chip, by its MAC address.

A chip whose eFuses or whose flash chip are others since is written by nobody before a person says that it is
right (``accept``), and two boards of a run that turn out to be one chip are told.
"""

from __future__ import annotations

import os
import re
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from hil.base.flock import wait_for_lock
from hil.boards.chip_state import Expected, file_name, unpack
from hil.boards.lease import open_lock
from hil.boards.rack import Board

_RECORD_BYTES = 1024  # fixed and within a page, so that one write replaces the record whole
_LOCK_TIMEOUT_S = 5.0
_TOLD = re.compile(r"^Chip state: (\{.*\})$", re.MULTILINE)


class KnownChips:
    """The chips of a rack, kept in ``folder``, and which boards of this run they are. For several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[str, str] = {}  # board by MAC address
        self._lock = threading.Lock()

    def expected(self, board: Board) -> Expected:
        """Return what a board has to be to be written to."""
        with self._lock:
            taken = {mac: seen for mac, seen in self._seen.items() if seen != board.id}
        return Expected(board.mac, looks=True, kept=str(self._folder.resolve()), taken=taken)

    def learn(self, board: Board, said: str) -> None:
        """Keep what esptool's process told of a board's chip. Raises RigError as a lease does.

        A record that cannot be written stops no run.
        """
        found = [unpack(text) for text in _TOLD.findall(said)]
        if not found or found[-1] is None:
            return
        now = replace(found[-1], board=board.id, since=datetime.now(UTC).isoformat(timespec="seconds"))
        with self._lock:
            self._seen[now.mac] = board.id
        file = open_lock(self._folder / file_name(now.mac))
        try:
            with suppress(OSError):
                if wait_for_lock(file, timeout_s=_LOCK_TIMEOUT_S, waiting=lambda: None):
                    os.pwrite(file, now.pack().encode().ljust(_RECORD_BYTES - 1) + b"\n", 0)
        finally:
            os.close(file)


def accept(folder: Path, board: Board) -> int:
    """Forget what was kept of a board's chips, so that the next flash keeps what it finds; return how many.

    Raises OSError where a record is another user's.
    """
    count = 0
    for path in folder.glob("*.chip"):
        state = unpack(path.read_bytes())
        if path.name == file_name(board.mac) or (state and not board.mac and state.board == board.id):
            path.write_bytes(b"")
            count += state is not None
    return count
