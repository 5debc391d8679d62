# SPDX-License-Identifier: Apache-2.0
"""Every fault has an owner, and the owner decides the exit code.

    HilError
    ├── ConfigError     2  the user's input: rack file, threshold file, option, missing build
    ├── FirmwareError   1  the device under test: panic, assertion, watchdog, wrong answer
    ├── RigError        3  the lab: board, port, power, broker, access point, host, disk
    │   └── NoAnswerError  a board that does not answer, which something may bring back
    └── Undecided    4  nothing measured, or too little to decide

An error sentence says what was attempted, on which board and port, what came back, where the log is,
and what to do next.
"""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Callable, Iterable
from enum import IntEnum
from types import FrameType
from typing import NoReturn


class ExitCode(IntEnum):
    """Exit codes of the ``hil`` command; pytest's own status is set to match."""

    PASS = 0
    FIRMWARE = 1
    CONFIG = 2
    RIG = 3
    UNDECIDED = 4
    INTERRUPTED = 130
    TERMINATED = 143


# Where several apply, the first in this order wins.
PRECEDENCE = (
    ExitCode.INTERRUPTED,
    ExitCode.TERMINATED,
    ExitCode.CONFIG,
    ExitCode.FIRMWARE,
    ExitCode.RIG,
    ExitCode.UNDECIDED,
    ExitCode.PASS,
)


class HilError(Exception):
    """A fault with an owner. Raise one of its subclasses."""

    exit_code = ExitCode.RIG
    owner = "rig"

    def __init__(self, sentence: str, *, next_step: str = "", log: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.next_step = next_step
        self.log = log

    def __str__(self) -> str:
        parts = [self.sentence]
        if self.log:
            parts.append(f"Log: {self.log}.")
        if self.next_step:
            parts.append(f"Next: {self.next_step}")
        return " ".join(parts)


class ConfigError(HilError):
    """The input is wrong; nothing was measured because of it."""

    exit_code = ExitCode.CONFIG
    owner = "configuration"


class RefusedSourcesError(ConfigError):
    """Sources do not build, as they are: a fact of theirs, whatever machine builds them."""


class FirmwareError(HilError):
    """The firmware under test misbehaved."""

    exit_code = ExitCode.FIRMWARE
    owner = "firmware"


class RigError(HilError):
    """The lab failed, so there is no verdict on the firmware."""

    exit_code = ExitCode.RIG
    owner = "rig"


class NoAnswerError(RigError):
    """A board does not answer: it is silent, or its boot loader is. Something may bring it back.

    ``in_use``: it had answered in this boot, over a port that is still there.
    """

    def __init__(self, sentence: str, *, next_step: str = "", log: str = "", in_use: bool = False) -> None:
        super().__init__(sentence, next_step=next_step, log=log)
        self.in_use = in_use


class Undecided(HilError):  # noqa: N818 (an outcome rather than an error)
    """Nothing was measured, or too little to decide."""

    exit_code = ExitCode.UNDECIDED
    owner = "rig"


_NO_MEMORY = re.compile(r"failed to map segment|[Cc]annot allocate memory")  # as the loader says it


def want_of(error: BaseException) -> RigError | None:
    """Return the error of a host that lacks something; None for another error.

    That is descriptors, memory, room on a disk, or the right to write a file.
    """
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.EMFILE, errno.ENFILE):
        return RigError(
            "hil has reached this host's limit of open files.",
            next_step="raise the limit (ulimit -n 1024), then run again.",
        )
    if number in (errno.ENOSPC, errno.EDQUOT):
        return RigError(
            "no space is left on the disk that hil writes to.", next_step="free some space, then run again."
        )
    if isinstance(error, OSError) and error.filename and number in (errno.EROFS, errno.EACCES):
        return RigError(
            f"{error.filename}: {error.strerror}.",
            next_step="give this user access to it, or work in a folder of your own.",
        )
    loading = isinstance(error, ImportError) and _NO_MEMORY.search(str(error))
    if isinstance(error, MemoryError) or number == errno.ENOMEM or loading:
        return RigError(
            "hil ran out of memory on this host.",
            next_step="free memory or raise the limit (ulimit -v), then run again.",
        )
    return None


def unexpected_in_words(error: BaseException) -> str:
    """Return the sentence for an error that nobody expected: what the host lacks, else that it is a defect of
    ours, and how to see more."""
    return str(want_of(error) or f"internal error: {error!r}. `hil --debug …` shows where.")


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP arrived; like Ctrl-C, with an exit code of its own."""


def terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Handle SIGTERM and SIGHUP."""
    raise Terminated


def code_of_interruption(error: BaseException) -> ExitCode:
    """Return the exit code of a program that was interrupted."""
    return ExitCode.TERMINATED if isinstance(error, Terminated) else ExitCode.INTERRUPTED


def combine_exit_codes(codes: Iterable[int]) -> ExitCode:
    """Return the code that takes precedence; PASS where none is given."""
    present = {ExitCode(code) for code in codes}
    return next((code for code in PRECEDENCE if code in present), ExitCode.PASS)


def exit_status(body: Callable[[], object]) -> int:
    """Run the body of a program; return its exit status, after saying on stderr what went wrong."""
    try:
        body()
    except HilError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    return int(ExitCode.PASS)
