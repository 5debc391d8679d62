# SPDX-License-Identifier: Apache-2.0
"""flock(2): a lock that the kernel drops with the process that holds it."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable

POLL_S = 0.2


def try_lock(file: int, *, shared: bool = False) -> bool:
    """Lock the open file ``file``, for oneself alone or ``shared``; return False where somebody else has it.

    Raises OSError where the file system knows no locks.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(file: int, *, timeout_s: float, waiting: Callable[[], object]) -> bool:
    """Lock the open file ``file`` for oneself alone; return False where somebody else keeps it too long.

    ``waiting`` is called once where it has to be waited for. Raises OSError as ``try_lock`` does.
    """
    deadline = time.monotonic() + timeout_s
    told = False
    while not try_lock(file):
        if time.monotonic() >= deadline:
            return False
        if not told:
            waiting()
            told = True
        time.sleep(POLL_S)
    return True
