# SPDX-License-Identifier: Apache-2.0
"""End a program with this process where the kernel does not.

The kernel kills what LocalSpawner starts when this process dies. But that wish is forgotten when a program is
executed that has capabilities of its own (prctl(2), PR_SET_PDEATHSIG), as dumpcap has on a physical rack.
"""

from __future__ import annotations

import contextlib
import subprocess

# Input ends with this process. $0 is the pid, $1 the name of its program: by then it may be another one's.
_GUARD = 'read -r _; test "$(cat "/proc/$0/comm")" = "$1" && kill -KILL "$0"'


class Lifeline:
    """Kills the program ``pid``, whose name (comm of proc(5)) is ``name``, when this process is gone."""

    def __init__(self, pid: int, name: str) -> None:
        self._guard = subprocess.Popen(
            ["sh", "-c", _GUARD, str(pid), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is not for the guard
        )

    def close(self) -> None:
        """Let go of the program, which lives on where it has not ended. Never raises."""
        with contextlib.suppress(OSError):
            self._guard.kill()
        self._guard.wait()
        if self._guard.stdin:
            self._guard.stdin.close()
