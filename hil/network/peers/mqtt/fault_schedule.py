# SPDX-License-Identifier: Apache-2.0
"""Makes a case's faults at their times, and undoes each, whatever happens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from hil.base.errors import HilError, RigError
from hil.network.peers.mqtt.settings import FaultPlan

END_TIMEOUT_S = 30.0  # a flood that the broker has still to read, a broker that starts again
STOP_TIMEOUT_S = 3.0
FIRST_POLL_S = 0.005

Switch = Callable[[threading.Event], AbstractContextManager[bool]]


@dataclass(frozen=True)
class Moment:
    """One fault by the host's wall clock: from when it was in force until it was undone."""

    began_us: int
    ended_us: int


class FaultSchedule:
    """One thread makes the faults, one after the other. ``switch`` enters a fault and leaves it; it yields
    False where there was nothing to disturb, which is not counted. ``has_first`` says that the case began.
    """

    def __init__(self, plan: FaultPlan, switch: Switch, has_first: Callable[[], bool]) -> None:
        self._plan = plan
        self._switch = switch
        self._has_first = has_first
        self._stopping = threading.Event()
        self._moments: list[Moment] = []
        self._error: HilError | None = None
        self._worker = threading.Thread(target=self._work, name="faults", daemon=True)

    def start(self) -> None:
        self._worker.start()

    def check(self) -> None:
        """Raise what kept a fault from being made, or undone."""
        if self._error:
            raise self._error

    def finish(self) -> tuple[Moment, ...]:
        """End the fault that is going on, make no more; returns those made. Raises what check() does."""
        self._end(END_TIMEOUT_S)
        self.check()
        if self._worker.is_alive():
            raise RigError(f"the fault {self._plan.kind} was not removed within {END_TIMEOUT_S:g} s.")
        return tuple(self._moments)

    def stop(self) -> None:
        """As finish(), but it waits less and never raises; a second call does nothing."""
        self._end(STOP_TIMEOUT_S)

    def _end(self, timeout_s: float) -> None:
        self._stopping.set()
        if self._worker.is_alive():
            self._worker.join(timeout_s)

    def _work(self) -> None:
        try:
            self._make_all()
        except HilError as error:
            self._error = error
        except Exception as error:  # whatever it is, the case must hear of it
            self._error = RigError(f"making the fault {self._plan.kind}: {error!r}.")

    def _make_all(self) -> None:
        while not self._has_first():
            if self._stopping.wait(FIRST_POLL_S):
                return
        due = time.monotonic() + self._plan.after_s
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            self._make_one()
            if not self._plan.every_s:
                return
            due = max(due + self._plan.every_s, time.monotonic())

    def _make_one(self) -> None:
        with self._switch(self._stopping) as made:
            began_us = _now_us()
            if made:
                self._stopping.wait(self._plan.length_s)
        if made:
            self._moments.append(Moment(began_us, _now_us()))


def _now_us() -> int:
    return time.time_ns() // 1000
