# SPDX-License-Identifier: Apache-2.0
"""The queue of a rack: runs that take some of its boards, whichever are free, the shortest run first.

Each second that a run waits counts as one that it is shorter, so none starves. A run that waits has a ticket,
a locked file beside the boards' locks; the kernel unlocks it with its process. Who takes boards by name
(hil.boards.lease) does not stand in it.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from hil.base.errors import RigError
from hil.base.flock import try_lock
from hil.boards.lease import BOARD_POLL_S, GRACE_S, UNKNOWN_HOLDER, open_lock, read_holder, write_holder

_TICKET = ".ticket"


@dataclass(frozen=True)
class Ticket:
    """A place in the queue for ``boards``: the least ``order_s`` is first. The clock is the host's."""

    boards: tuple[str, ...]
    order_s: float
    name: str

    def is_before(self, other: Ticket) -> bool:
        """Whether it goes first; runs that want none of the same boards are not in each other's way."""
        mine, theirs = (self.order_s, self.name), (other.order_s, other.name)
        return mine < theirs and bool(set(self.boards) & set(other.boards))


def take_boards(
    lock_dir: Path,
    boards: Sequence[str],
    count: int,
    *,
    expected_s: Callable[[], float],
    wait_s: float = 0.0,
    on_wait: Callable[[str], None] = lambda _sentence: None,
) -> dict[str, int]:
    """Take ``count`` of ``boards``; return their locked files by board. Who closes one gives the board back.

    Of those that are free the ones are taken that nobody has had for longest. ``expected_s`` says how long
    the run will have them, and is asked only where it has to wait; ``on_wait`` is told for whom, once.

    Raises RigError: so many are not free still after ``wait_s`` seconds.
    """
    deadline = time.monotonic() + max(wait_s, GRACE_S)
    now = Ticket(tuple(boards), math.inf, "")
    if not _before(lock_dir, now) and (found := _try(lock_dir, boards, count)):
        return found
    with _ticket(lock_dir, boards, expected_s()) as mine:
        told = False
        while True:
            before = _before(lock_dir, mine)
            if not before and (found := _try(lock_dir, boards, count)):
                return found
            sentence = _why(lock_dir, boards, count, len(before))
            if time.monotonic() >= deadline:
                raise RigError(sentence, next_step="wait for them, or ask for more patience: --wait SECONDS.")
            if not told:
                on_wait(sentence)
                told = True
            time.sleep(BOARD_POLL_S)


def _try(lock_dir: Path, boards: Sequence[str], count: int) -> dict[str, int]:
    """Lock so many boards at once; nothing where there are fewer free ones."""
    found: dict[str, int] = {}
    for board in sorted(boards, key=lambda board: (_last_had(lock_dir, board), board)):
        file = open_lock(lock_dir / f"{board}.lock")
        if not try_lock(file):
            os.close(file)
            continue
        found[board] = file
        if len(found) == count:
            for taken in found.values():
                write_holder(taken, "about to begin")
            return found
    for file in found.values():
        os.close(file)
    return {}


def _last_had(lock_dir: Path, board: str) -> int:
    """Return when a board's lock was last written to, which giving it back does; 0 where it never was."""
    try:
        return (lock_dir / f"{board}.lock").stat().st_mtime_ns
    except OSError:
        return 0


@contextmanager
def _ticket(lock_dir: Path, boards: Sequence[str], expected_s: float) -> Iterator[Ticket]:
    """Stand in the queue; the ticket appears whole and locked, so that nobody takes it for a dead one's."""
    name = f"{time.monotonic_ns()}-{os.getpid()}"
    mine = Ticket(tuple(boards), time.monotonic() + expected_s, name)
    path = lock_dir / f"{name}{_TICKET}"
    new = path.with_suffix(".new")
    file = open_lock(new)
    try:
        try_lock(file)
        os.pwrite(file, json.dumps(asdict(mine)).encode(), 0)
        new.rename(path)
        yield mine
    finally:
        for one in (new, path):
            one.unlink(missing_ok=True)
        os.close(file)


def _before(lock_dir: Path, mine: Ticket) -> list[Ticket]:
    """Return the tickets of the living that go before one; those of the dead are thrown away."""
    found = (_read(path) for path in lock_dir.glob(f"*{_TICKET}") if path.stem != mine.name)
    return [ticket for ticket in found if ticket is not None and ticket.is_before(mine)]


def _read(path: Path) -> Ticket | None:
    """Return a ticket, None where its process is gone."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if try_lock(file, shared=True):
            with suppress(OSError):  # in a sticky folder it may be another user's
                path.unlink()
            return None
        stored = json.loads(os.pread(file, 65536, 0))
        return Ticket(tuple(stored["boards"]), float(stored["order_s"]), str(stored["name"]))
    except (ValueError, KeyError, TypeError):
        return None
    finally:
        os.close(file)


def _why(lock_dir: Path, boards: Sequence[str], count: int, before: int) -> str:
    held = [(board, read_holder(lock_dir, board)) for board in boards]
    by = [f"{board} is held by {(one or UNKNOWN_HOLDER).describe()}" for board, one in held if one]
    free = len(boards) - len(by)
    waits = (
        f"; {before} run{'s' * (before > 1)} before this one wait{'s' * (before == 1)} too" if before else ""
    )
    holders = f": {'; '.join(by)}" if by else ""
    asked = f"of {len(boards)} boards of rack {lock_dir.name} {free} are free, and {count} are asked for"
    return f"{asked}{holders}{waits}."
