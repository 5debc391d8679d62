# SPDX-License-Identifier: Apache-2.0
"""Whether a program of the rack was kept from running while a case was measured.

A broker, a server or a client that is stopped (SIGSTOP, a debugger) or waits for its disk makes a case slow,
which no firmware can help. Its state says so (proc(5)), whatever the program itself would have to tell.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from hil.base.errors import RigError
from hil.base.process import proc_stat
from hil.network.broker_watch import Absences
from hil.network.process import PAUSED_S

_KEPT = frozenset("TtD")  # stopped, traced, waiting for a disk
_STEP_S = 0.05
_NS = 1_000_000_000


class Standstill:
    """Looks at a program from now on until ``end()``, by a thread. ``title`` names it in a sentence.

    ``pid`` is asked at each look, for a program may be started again; None where there is none. ``meant`` are
    the spells in which the run itself kept it from running.
    """

    def __init__(
        self, title: str, pid: Callable[[], int | None], meant: Callable[[], Absences] = tuple
    ) -> None:
        self._title, self._pid, self._meant = title, pid, meant
        self._spells: list[tuple[int, int]] = []
        self._over = threading.Event()
        threading.Thread(target=self._watch, name=f"standstill of {title}", daemon=True).start()

    def check(self) -> None:
        """Raise RigError where it was kept from running for a second or more."""
        longest_s = max((ended - began for began, ended in self._unmeant()), default=0) / _NS
        if longest_s >= PAUSED_S:
            raise RigError(
                f"{self._title} stood still for {longest_s:.1f} s meanwhile. The samples say "
                "nothing about the firmware.",
                next_step="look for what stopped it (the host's memory, disk, a debugger), then run again.",
            )

    def end(self) -> None:
        self._over.set()

    def _unmeant(self) -> list[tuple[int, int]]:
        meant = self._meant()
        return [
            (began, ended)
            for began, ended in tuple(self._spells)
            if not any(first < ended and (last is None or last > began) for first, last in meant)
        ]

    def _watch(self) -> None:
        began_ns: int | None = None
        while not self._over.wait(_STEP_S):
            now_ns = time.monotonic_ns()
            if not is_kept(self._pid()):
                began_ns = None
            elif began_ns is None:
                began_ns = now_ns
                self._spells.append((now_ns, now_ns))
            else:
                self._spells[-1] = (began_ns, now_ns)


def is_kept(pid: int | None) -> bool:
    """Return whether a program is kept from running now; of one that is not seen from here, no."""
    try:
        return proc_stat(pid)[0] in _KEPT
    except OSError:
        return False
