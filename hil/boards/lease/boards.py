"""The lease of a board: one run at a time owns it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hil.base.errors import ConfigError, RigError
from hil.base.flock import try_lock
from hil.boards.lease.lock_file import UNKNOWN_HOLDER, open_lock, parse_holder, write_holder, write_record
from hil.boards.lease.turns import AIR, RACK

POLL_S = 0.2
# Whoever reads the holder takes the lock for a moment, so a first refusal need not be a conflict.
GRACE_S = 0.5


@contextmanager
def lease_boards(
    lock_dir: Path,
    board_ids: Sequence[str],
    *,
    run_id: str,
    wait_s: float = 0.0,
    on_wait: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Hold all boards named, taken in sorted order so that two runs cannot wait for each other.

    Raises:
        ConfigError: a board has the name of the air's lock, or of the rack's.
        RigError: somebody else holds one still after ``wait_s`` seconds; the sentence names the holder.
    """
    for name in (AIR, RACK):
        if name in board_ids:
            raise ConfigError(
                f"a board of rack {lock_dir.name} is called {name!r}, which is the name of the {name}'s own "
                "lock.",
                next_step="give the board another id in the rack file.",
            )
    deadline = time.monotonic() + max(wait_s, GRACE_S)
    with ExitStack() as stack:
        for board_id in sorted(board_ids):
            file = open_lock(lock_dir / f"{board_id}.lock")
            stack.callback(os.close, file)
            _lock(file, lock_dir, board_id, deadline, on_wait if wait_s > 0 else None)
            write_holder(file, run_id)
            stack.callback(write_record, file, b"")
        yield


def _lock(
    file: int, lock_dir: Path, board_id: str, deadline: float, on_wait: Callable[[str], None] | None
) -> None:
    while not try_lock(file):
        sentence = _held_sentence(lock_dir, board_id)
        if time.monotonic() >= deadline:
            raise RigError(sentence, next_step="wait for it, or ask for patience: --wait SECONDS.")
        if on_wait:
            on_wait(sentence)
            on_wait = None
        time.sleep(POLL_S)


def _held_sentence(lock_dir: Path, board_id: str) -> str:
    holder = parse_holder(lock_dir / f"{board_id}.lock") or UNKNOWN_HOLDER
    return f"board {board_id} of rack {lock_dir.name} is held by {holder.describe()}."
