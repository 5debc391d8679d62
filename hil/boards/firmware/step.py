"""One step of a build: a process with a log and a deadline; nothing is left of it however this one ends."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from hil.base.errors import ConfigError

STEP_TIMEOUT_S = 1800.0
END_TIMEOUT_S = 2.0


def run_step(
    argv: Sequence[str],
    *,
    log: Path,
    fresh: bool = False,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run ``argv`` and write what it says to ``log``, a ``fresh`` one or at its end; ``env`` adds variables.

    Raises:
        ConfigError: it failed (its first error, its log), did not end in time, or cannot be started.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w" if fresh else "a", encoding="utf-8") as out:
        out.write(f"$ {' '.join(argv)}\n")
        out.flush()
        status = _run_to_end(argv, out, log, cwd, {**os.environ, **(env or {})})
    if status:
        raise ConfigError(
            f"the build failed: {_first_error(log)}",
            log=str(log),
            next_step="mend the source and build again.",
        )


# The group's leader outlives a kill -9 of ours just long enough to end what it started. SIGTERM first, as
# ninja keeps compilers in process groups of their own and passes it on to them.
_LEADER = """
trap 'trap "" TERM; kill -TERM 0; wait; exit 143' TERM
test "$PPID" = "$0" || exit 1
"$@" &
wait $!
"""


def _run_to_end(argv: Sequence[str], out: TextIO, log: Path, cwd: Path | None, env: Mapping[str, str]) -> int:
    leader = ("setpriv", "--pdeathsig", "TERM", "--", "sh", "-c", _LEADER, str(os.getpid()))
    try:
        process = subprocess.Popen(
            [*leader, *argv], stdout=out, stderr=subprocess.STDOUT, cwd=cwd, env=env, start_new_session=True
        )
    except OSError as error:
        raise ConfigError(
            f"starting {argv[0]}: {error.strerror}.", next_step="sudo apt-get install util-linux"
        ) from error
    try:
        return process.wait(STEP_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"{argv[0]} did not end within {STEP_TIMEOUT_S:g} s.", log=str(log)) from error
    finally:
        if process.returncode is None:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_TIMEOUT_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(END_TIMEOUT_S)


def _first_error(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    wrong = [number for number, line in enumerate(lines) if "error:" in line or "Error" in line]
    if not wrong:
        return lines[0].strip() if lines else "no output"
    found = ""
    for line in filter(None, (line.strip() for line in lines[wrong[0] :])):
        found = f"{found} {line}".lstrip()
        if not found.endswith(":"):  # CMake says in the next line what it is
            break
    return found
