# SPDX-License-Identifier: Apache-2.0
"""Programs on the rack's host that must not outlive this process."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from hil.base.errors import HilError, RigError
from hil.base.process import find_program, tied
from hil.network.helper import HelperProcess, helper_for


class Process(Protocol):
    """A started program. ``returncode`` is None while it runs and negative for a signal."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, number: int) -> None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


class Spawner(Protocol):
    """Starts programs on the rack's host: LocalSpawner, or a VirtualRack (inside its namespaces).

    ``isolated`` says that the network there is the rack's own, so that fixed ports are free.
    ``enter_command`` goes before a command to run it in that network from outside; "" where it is this one.
    """

    @property
    def isolated(self) -> bool: ...

    @property
    def enter_command(self) -> str: ...

    def spawn(self, argv: Sequence[str], *, log_path: Path) -> Process: ...


PAUSED_S = 1.0  # no load of a host that still measures keeps a program waiting so long
_PAUSE_STEP_S = 0.1


def watch_pauses(tell: Callable[[int, int], object]) -> None:
    """Have ``tell`` called, from now on and by a thread, whenever this program was not let run for PAUSED_S.

    It is given from when to when that was, in nanoseconds of the monotonic clock.
    """

    def watch() -> None:
        while True:
            began_ns = time.monotonic_ns()
            time.sleep(_PAUSE_STEP_S)
            ended_ns = time.monotonic_ns()
            if ended_ns - began_ns >= (PAUSED_S + _PAUSE_STEP_S) * 1e9:
                tell(began_ns, ended_ns)

    threading.Thread(target=watch, daemon=True).start()


END_TIMEOUT_S = 5.0


def system_program(name: str, package: str, attempt: str) -> str:
    """Return where a program is. Raises RigError saying what it was for and how to install it."""
    found = find_program(name)
    if found is None:
        raise RigError(f"{attempt}: {name} is not installed.", next_step=f"sudo apt-get install {package}")
    return found


def end_process(process: Process, timeout_s: float) -> None:
    """Terminate a program, kill it where it does not end within ``timeout_s``. Never raises."""
    for ask in (process.terminate, process.kill):
        with contextlib.suppress(HilError, OSError):  # TimeoutError is an OSError
            ask()
            process.wait(timeout_s)
            return


def run_to_end(spawner: Spawner, argv: Sequence[str], timeout_s: float, *, log_path: Path) -> tuple[int, str]:
    """Run a program; return its status, that of SIGKILL where it takes longer, and what it said.

    Raises RigError where it cannot be started.
    """
    before = log_path.stat().st_size if log_path.exists() else 0
    process = spawner.spawn(argv, log_path=log_path)
    try:
        status = process.wait(timeout_s)
    except TimeoutError:
        process.kill()
        with contextlib.suppress(TimeoutError):
            process.wait(END_TIMEOUT_S)  # so that it is not left to its parent as a zombie
        status = -signal.SIGKILL
    return status, log_path.read_bytes()[before:].decode(errors="replace")


class LocalProcess:
    """A program started by LocalSpawner."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        return self._popen.poll()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the status. Raises TimeoutError after ``timeout`` seconds."""
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"pid {self.pid} still runs after {timeout} s") from error

    def send_signal(self, number: int) -> None:
        """Signal the process group; nothing happens when it has ended."""
        if self._popen.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


# PR_SET_PDEATHSIG fires when the parent *thread* ends (prctl(2)), so one thread that lasts as long as this
# process starts everything, whichever thread asks.
_STARTER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")


class LocalSpawner:
    """Starts programs on this machine; the kernel kills them when this process dies, even by kill -9."""

    isolated = False
    enter_command = ""

    def spawn(self, argv: Sequence[str], *, log_path: Path) -> Process:
        """Start ``argv`` with its output appended to ``log_path``. Raises RigError.

        What needs root is started by the rack's helper, where there is one.
        """
        if helper := helper_for(argv[0]):
            return HelperProcess.start(helper, argv, log_path=log_path)
        if shutil.which(argv[0]) is None:
            raise RigError(f"Starting {argv[0]}: it is not on PATH or not executable.")
        log_path.parent.mkdir(parents=True, exist_ok=True)
        return _STARTER.submit(_start, argv, log_path).result()


def _start(argv: Sequence[str], log_path: Path) -> LocalProcess:
    try:
        with log_path.open("ab") as log:
            popen = subprocess.Popen(
                tied(argv), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
    except OSError as error:
        raise RigError(
            f"Starting {argv[0]}: {error.strerror}.", next_step="sudo apt-get install util-linux"
        ) from error
    return LocalProcess(popen)
