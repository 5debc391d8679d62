"""A build tree of the host build (firmware/host): one setting of compiler and kernel, for all chips.

One build at a time in a folder; the kernel gives the lock back when its process ends.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.flock import wait_for_lock
from hil.boards.firmware.revision import STEP_TIMEOUT_S, run_step


@dataclass(frozen=True)
class HostTree:
    """``options`` are CMake's; whoever builds in the tree holds its ``lock`` (build_lock.py)."""

    sources: Path  # the folder firmware/
    folder: Path
    options: tuple[str, ...] = ()

    @property
    def lock(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.lock")

    @property
    def log(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.log")

    def build(self, *programs: str) -> None:
        """Bring programs up to date. Raises ConfigError: a missing tool, or the compiler's first error."""
        for tool in ("cmake", "ninja", "cc"):
            if not shutil.which(tool):
                raise ConfigError(
                    f"building for virtual boards needs {tool}, which is not installed.",
                    next_step="hil doctor.",
                )
        source = str(self.sources / "host")
        configure = ("cmake", "-S", source, "-B", str(self.folder), "-G", "Ninja", *self.options)
        run_step(configure, log=self.log, fresh=True)
        run_step(("cmake", "--build", str(self.folder), "--target", *programs), log=self.log)


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
