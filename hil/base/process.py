# SPDX-License-Identifier: Apache-2.0
"""Other programs: start them so that none outlives this process, run them to their end, ask the kernel."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hil.base.errors import RigError

# The kernel kills what is started so when the thread that started it ends, even by kill -9.
DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
# A parent that died before the signal was asked for will never send it.
_IF_PARENT_LIVES = 'test "$PPID" = "$0" || exit 1; exec "$@"'

SYSTEM_FOLDERS = "/usr/bin:/usr/sbin:/sbin:/usr/local/sbin"  # which are not on the PATH of a plain user


def find_program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=SYSTEM_FOLDERS)


def tied(argv: Sequence[str]) -> list[str]:
    """Return the command that starts ``argv`` as DIE_WITH_PARENT does, and only while this process lives."""
    return [*DIE_WITH_PARENT, "sh", "-c", _IF_PARENT_LIVES, str(os.getpid()), *argv]


def kill_group(process: subprocess.Popen[Any]) -> None:
    """Kill a group's leader with all that it started; another user's process is not ours to end."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def run_group(argv: Sequence[str], timeout_s: float, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and return its status and words; ``options`` are Popen's.

    Where it does not end by itself, also because of an interrupt, it is killed with all that it started.

    Raises OSError: it cannot be started. subprocess.TimeoutExpired: it took longer than ``timeout_s``.
    """
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    with subprocess.Popen(argv, text=True, errors="replace", start_new_session=True, **streams) as process:
        try:
            said, complaint = process.communicate(timeout=timeout_s)
        except BaseException:
            kill_group(process)
            raise
    return subprocess.CompletedProcess(argv, process.returncode, said, complaint)


def output_of(argv: Sequence[str], timeout_s: float) -> str:
    """Run a program and return what it printed; one that does not end is killed with all that it started.

    Raises RigError: it is not there, cannot be started, takes longer, or ends with a status.
    """
    command = shlex.join(argv)
    try:
        done = run_group(argv, timeout_s)
    except FileNotFoundError as error:
        raise RigError(f"the program {argv[0]!r} was not found.", next_step="install it.") from error
    except OSError as error:
        raise RigError(
            f"{argv[0]!r} could not be started: {error.strerror}.",
            next_step="make it executable (chmod +x) for this user.",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise RigError(
            f"'{command}' did not end within {timeout_s:g} s; it was ended, with all its child processes.",
            next_step="run it by hand.",
        ) from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise RigError(
            f"'{command}' ended with status {done.returncode}: {lines[-1] if lines else 'no message'}.",
            next_step="run it by hand; check its permissions.",
        )
    return done.stdout


def how_ended(code: int) -> str:
    """Describe how a program ended, from its returncode."""
    return f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"


def proc_stat(pid: object) -> list[str]:
    """Return the state of a process, or of a thread ``PID/task/TID``, and the fields after it: proc(5).

    Raises OSError: the process is gone, or cannot be seen from here.
    """
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()


def innermost_pid(pid: int) -> int:
    """Return the id that a process has in its own process namespace: NSpid of proc(5).

    Raises OSError: the process is gone, or cannot be seen from here.
    """
    status = Path(f"/proc/{pid}/status").read_text(errors="replace")
    return int(status.partition("\nNSpid:")[2].partition("\n")[0].split()[-1])
