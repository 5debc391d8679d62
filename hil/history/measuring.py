# SPDX-License-Identifier: Apache-2.0
"""Many runs, one after another, until enough of them count.

Each is a process of its own. A run that does not count is measured again. What was begun is on disk, so that
the same command goes on after an interruption.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from hil.base.errors import ConfigError, ExitCode, RigError
from hil.base.reading import RUN_MOST_BYTES, read_at_most
from hil.store import RunDirectory
from hil.store.files import replace_file

MOST_FAILURES = 3  # in a row
_END_S = 180.0  # in which a run that is interrupted puts its boards down and says what it has

Say = Callable[[str], None]


def until_done(argv: Sequence[str], wanted: int, counted: Callable[[], int], say: Say) -> None:
    """Measure runs until ``counted`` returns as many as are wanted; a run that adds none failed.

    Raises:
        ConfigError: a run's configuration is wrong.
        RigError: MOST_FAILURES runs failed in a row.
        KeyboardInterrupt: the run that was being measured has ended then.
    """
    failures = 0
    while (done := counted()) < wanted:
        say(f"Run {done + 1} of {wanted}")
        code = _measure(argv)
        if counted() > done:
            failures = 0
            continue
        failures += 1
        _check(code, failures)
        say(f"That run ended with {code} and does not count; it is measured again.")


def begin(state: Path, options: Sequence[str], out: Path) -> tuple[str, bool]:
    """Return the last run before what is measured, and whether an interrupted command goes on.

    It goes on if the file ``state`` says that it was begun with the same ``options``. Otherwise the file is
    written.
    """
    before = _read_after(state, options)
    if before is not None:
        return before, True
    after = max((directory.run_id for directory in RunDirectory.list(out)), default="")
    state.parent.mkdir(parents=True, exist_ok=True)
    replace_file(state, json.dumps({"options": list(options), "after": after}).encode() + b"\n")
    return after, False


def _read_after(state: Path, options: Sequence[str]) -> str | None:
    """Return the last run before what was begun with these options; None where nothing was."""
    try:
        found = json.loads(read_at_most(state, RUN_MOST_BYTES))
    except (OSError, ValueError):
        return None
    if isinstance(found, dict) and found.get("options") == list(options):
        after = found.get("after")
        return after if isinstance(after, str) else None
    return None


def _measure(argv: Sequence[str]) -> int:
    """Run one run and return its status.

    It has a process group of its own, so that Ctrl-C reaches it once, from here; whatever ends this process
    lets the run put its boards down first.
    """
    run = subprocess.Popen(argv, stdin=subprocess.DEVNULL, process_group=0)
    try:
        return run.wait()
    except BaseException:
        end_run(run)
        raise


def end_run(run: subprocess.Popen[bytes]) -> None:
    """Interrupt a run, and wait until its boards are put down; kill it where that does not end."""
    run.send_signal(signal.SIGINT)
    try:
        run.wait(timeout=_END_S)
    except BaseException:  # once more interrupted, or it does not end
        run.kill()
        run.wait()
        raise


def _check(code: int, failures: int) -> None:
    """Raise where going on would not help."""
    if code == ExitCode.CONFIG:
        raise ConfigError(
            "the run's configuration is wrong; its message is above.",
            next_step="correct it; the same command continues.",
        )
    if code in (ExitCode.INTERRUPTED, ExitCode.TERMINATED):
        raise KeyboardInterrupt
    if failures >= MOST_FAILURES:
        raise RigError(
            f"{failures} runs in a row failed, the last one with {code}; its message is above.",
            next_step="fix the cause; the same command continues.",
        )
