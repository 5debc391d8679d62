"""One build at a time in a folder; the kernel gives the lock back when its process ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.flock import wait_for_lock
from hil.boards.firmware.step import STEP_TIMEOUT_S


@contextmanager
def locked(path: Path, what: str, say: Callable[[str], object]) -> Iterator[None]:
    """Hold the lock ``path``; ``say`` tells that another build, of ``what`` or beside it, is waited for.

    Raises ConfigError where that one does not end.
    """
    path.parent.mkdir(parents=True, exist_ok=True)

    def waiting() -> None:
        say(f"Waiting for another build of {what}")

    with path.open("w", encoding="utf-8") as lock:
        if not wait_for_lock(lock.fileno(), timeout_s=2 * STEP_TIMEOUT_S, waiting=waiting):
            raise ConfigError(f"another build of {what} does not end.", next_step=f"fuser -v {path}")
        yield
