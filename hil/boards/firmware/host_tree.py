"""A build tree of the host build (firmware/host): one setting of compiler and kernel, for all chips."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError
from hil.boards.firmware.step import run_step


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
