# SPDX-License-Identifier: Apache-2.0
"""Compilers and other short programs that the check starts: bounded in time, their words kept."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError

TIMEOUT_S = 120.0
ERROR_CHARACTERS = 600
NOT_FOUND = 127


@dataclass(frozen=True)
class Result:
    """How a program ended. ``status`` is -1 where it did not end in time."""

    argv: Sequence[str]
    status: int
    out: str
    errors: str

    def checked(self) -> str:
        """Return what it printed. Raises ConfigError where it failed."""
        if self.status:
            said = self.errors.strip()[:ERROR_CHARACTERS] or "no words"
            raise ConfigError(f"{Path(self.argv[0]).name} ended with {self.status}: {said}")
        return self.out


def run(argv: Sequence[str], *, cwd: Path | None = None, stdin: str = "") -> Result:
    """Run a program to its end; in English, whatever the machine speaks. Nothing of it is left afterwards."""
    pipe = subprocess.PIPE
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=environment,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            start_new_session=True,
        )
    except FileNotFoundError:
        return Result(argv, NOT_FOUND, "", f"{argv[0]} is not installed")
    with process:
        try:
            out, errors = process.communicate(stdin, TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return Result(argv, -1, "", f"did not end within {TIMEOUT_S:g} s")
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    return Result(argv, process.returncode, out, errors)
