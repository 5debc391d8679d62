# SPDX-License-Identifier: Apache-2.0
"""A process of an emulator: ask it something, start it, notice its end, end it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from hil.base.errors import RigError
from hil.base.process import how_ended, output_of, tied

ANSWER_TIMEOUT_S = 20.0


def ask(program: Path, *words: str) -> str:
    """Return what a program answers. Raises RigError: it does not, or fails."""
    try:
        return output_of([str(program), *words], ANSWER_TIMEOUT_S)
    except RigError as error:
        raise RigError(error.sentence, next_step="install it again.") from error


def start(
    argv: Sequence[str],
    *,
    log: IO[bytes],
    netns: Path | None = None,
    fds: Sequence[int] = (),
    stdin: int = subprocess.DEVNULL,
    stdout: int | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start an emulator in a group of its own; what it says goes to ``log``, or to ``stdout``.

    The kernel kills it when the thread that started it ends. Raises RigError.
    """
    enter = ["nsenter", f"--net={netns}", "--"] if netns else []
    try:
        return subprocess.Popen(
            tied([*enter, *argv]),
            stdin=stdin,
            stdout=log if stdout is None else stdout,
            stderr=log,
            pass_fds=fds,
            env=env,
            process_group=0,  # the supervisor's signal is for the board, which ends its emulator in order
        )
    except OSError as error:
        raise RigError(f"Starting {argv[0]}: {error.strerror}.", next_step="hil doctor") from error


def how_it_ended(name: str, status: int, log: Path) -> str:
    """Return how an emulator ended, with the last line that it said."""
    how = how_ended(status)
    said = log.read_text(errors="replace").split("\n") if log.exists() else []
    last = next((line.strip() for line in reversed(said) if line.strip()), "")
    return f"{name} {how}{f' and said: {last}' if last else ''}"


class EmulatorProcess:
    """A started process; ``on_exit`` gets its status, unless it was ended from here."""

    def __init__(self, process: subprocess.Popen[bytes], on_exit: Callable[[int], None]) -> None:
        self.process, self._on_exit = process, on_exit
        self._loop = asyncio.get_running_loop()
        self._pidfd = os.pidfd_open(process.pid)
        self._loop.add_reader(self._pidfd, self._exited)

    def end(self, number: signal.Signals, timeout_s: float) -> int:
        """Send a signal and wait; kill it where that does not help. Return its status."""
        self._unwatch()
        self.process.send_signal(number)
        self.process.send_signal(signal.SIGCONT)  # it may stand still
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return self.process.returncode

    def _exited(self) -> None:
        self._unwatch()
        self._on_exit(self.process.wait())

    def _unwatch(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
