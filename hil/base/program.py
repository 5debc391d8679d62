# SPDX-License-Identifier: Apache-2.0
"""What a program does before its work, so that its exit status is never an accident's.

Python ends with 1 on an exception that nobody caught, and OpenBLAS where it gets no memory; of `hil`, 1 is
the status of a regression.
"""

from __future__ import annotations

import mmap
import os
import resource
import sys
from pathlib import Path

from hil.base.errors import RigError

DESCRIPTORS, FEWEST_DESCRIPTORS = 4096, 256  # of a rack of eight boards with captures: some 150
ADDRESS_SPACE_BYTES = 768 << 20  # what NumPy, SciPy and the threads of a run reserve, generously


def keep_streams_open() -> None:
    """Open the null device in the place of each standard stream that the caller closed, also for successors.

    Else the next file that is opened would become stderr, and pytest ends with 1 where there is none.
    """
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
            os.set_inheritable(descriptor, True)  # dup2 leaves it as it is where it was opened as that one
        if getattr(sys, name) is None:
            stream = os.fdopen(descriptor, mode, encoding="utf-8", closefd=False)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def leave_no_core() -> None:
    """Let neither this process nor what it starts leave a core file: the memory of a run, of its broker and
    of a virtual board holds keys and pass phrases. Whoever needs one raises the limit again (prlimit)."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def require_memory() -> None:
    """Raise RigError where this process may not reserve ADDRESS_SPACE_BYTES more; nothing of it is used."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each would reserve a buffer, and none has work here
    try:
        mmap.mmap(-1, ADDRESS_SPACE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, MemoryError) as error:
        raise RigError(
            f"this process may not reserve {ADDRESS_SPACE_BYTES >> 20} MiB: {error}. Nothing was measured.",
            next_step="raise the limit (ulimit -v), or free memory.",
        ) from error


def require_descriptors() -> None:
    """Take as many descriptors as the limit allows, up to DESCRIPTORS, for this process and its successors.

    Raises RigError where these are fewer than FEWEST_DESCRIPTORS.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if most < FEWEST_DESCRIPTORS:
        raise RigError(
            f"this process may open {most} files, a run needs {FEWEST_DESCRIPTORS}. Nothing was measured.",
            next_step=f"raise the limit (ulimit -n {DESCRIPTORS}; LimitNOFILE of a service).",
        )
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def require_home() -> None:
    """Raise RigError where this user has no home, or may not look into it: esptool looks there for settings,
    and ends where it cannot. A folder that is not there is none."""
    try:
        home = Path.home()
    except RuntimeError:
        raise _homeless(f"user {os.getuid()} has no HOME, and none in /etc/passwd") from None
    try:
        (home / ".config").stat()
    except PermissionError as error:
        raise _homeless(f"HOME is {home}, which user {os.getuid()} may not look into") from error
    except OSError:
        return


def _homeless(what: str) -> RigError:
    return RigError(
        f"{what}. Nothing was measured.", next_step="set HOME to a folder that this user owns (sudo -H does)."
    )
