"""Turns: one case at a time has the air, and some cases have the whole rack."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hil.base.errors import RigError
from hil.base.flock import try_lock
from hil.boards.lease.lock_file import open_lock, read_holder, write_holder, write_record

AIR = "air"  # its lock lies beside the boards', and so does the rack's
RACK = "rack"
POLL_S = 0.1
DEADLINE_S = 3600.0  # far beyond what the longest case of another run may take


@contextmanager
def lease_air(lock_dir: Path, *, run_id: str, check_stop: Callable[[], None]) -> Iterator[None]:
    """Hold a rack's air alone among processes; ``check_stop`` is called meanwhile and may raise.

    Raises:
        RigError: it was not free within ``DEADLINE_S``; the sentence names the holder.
    """
    with _turn(lock_dir, AIR, run_id, check_stop, alone=True):
        yield


@contextmanager
def lease_rack(lock_dir: Path, *, run_id: str, alone: bool, check_stop: Callable[[], None]) -> Iterator[None]:
    """Take part in what happens on a rack; ``alone``, nothing else happens meanwhile.

    It holds among threads too, as each call locks the file anew. Arguments and errors are lease_air's.
    """
    with _turn(lock_dir, RACK, run_id, check_stop, alone=alone):
        yield


@contextmanager
def _turn(
    lock_dir: Path, name: str, run_id: str, check_stop: Callable[[], None], *, alone: bool
) -> Iterator[None]:
    """Hold a lock, shared or ``alone``.

    Whoever waits stands in a turnstile, so that nobody takes the lock again, or a share in it, before the one
    that waits.
    """
    deadline = time.monotonic() + DEADLINE_S
    with ExitStack() as stack:
        turnstile = open_lock(lock_dir / f"{name}.turnstile")
        stack.callback(os.close, turnstile)
        _lock_in_slices(turnstile, lock_dir, name, deadline, check_stop)
        file = open_lock(lock_dir / f"{name}.lock")
        stack.callback(os.close, file)
        _lock_in_slices(file, lock_dir, name, deadline, check_stop, shared=not alone)
        if alone:
            write_holder(file, run_id)
            stack.callback(write_record, file, b"")
        fcntl.flock(turnstile, fcntl.LOCK_UN)
        yield


def _lock_in_slices(
    file: int,
    lock_dir: Path,
    name: str,
    deadline: float,
    check_stop: Callable[[], None],
    *,
    shared: bool = False,
) -> None:
    check_stop()
    while not try_lock(file, shared=shared):
        if time.monotonic() >= deadline:
            holder = read_holder(lock_dir, name)
            by = holder.describe() if holder else "a process that did not write its name, or waits for it too"
            what = f"the air of rack {lock_dir.name}" if name == AIR else f"the rack {lock_dir.name}"
            raise RigError(
                f"{what} could not be had within {DEADLINE_S:.0f} s; it is held by {by}.",
                next_step=f"end that run (fuser -v {lock_dir / name}.*), then run again.",
            )
        time.sleep(POLL_S)
        check_stop()
