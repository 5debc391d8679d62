# SPDX-License-Identifier: Apache-2.0
"""The events of a trace as firmware/components/trace/include/trace/trace.h numbers them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

FIRST_MARK = 32


class EventKind(IntEnum):
    """trace_event_t. ``MARK`` stands for FIRST_MARK and all above."""

    SWITCHED_IN = 1
    SWITCHED_OUT = 2
    READY = 3
    WAITS = 4
    TAKEN = 5
    GIVEN = 6
    INHERITS = 7
    DISINHERITS = 8
    ISR_ENTER = 9
    ISR_EXIT = 10
    DELAYS = 11
    SUSPENDED = 12
    MARK = FIRST_MARK


class Mark(IntEnum):
    """trace_mark_t: what a bench says of its task."""

    PLANNED = 0
    WOKE = 1
    OUTLIER = 2
    MISSED = 3
    ACQUIRED = 4


OBJECT_KINDS = ("mutex", "recursive", "binary", "counting", "queue", "notification", "event_group")
LATE_MARKS = (Mark.OUTLIER, Mark.MISSED)


@dataclass(frozen=True)
class Task:
    """A task of the board; ``priority`` is its own, not an inherited one. ``core`` is None: any."""

    number: int
    name: str
    priority: int
    core: int | None

    @property
    def label(self) -> str:
        """Return "jitter (20)"."""
        return f"{self.name} ({self.priority})"


@dataclass(frozen=True)
class SharedObject:
    """What tasks wait for; ``kind`` is one of OBJECT_KINDS."""

    number: int
    kind: str

    @property
    def has_owner(self) -> bool:
        """Return whether who took it last holds it until it is given."""
        return self.kind in ("mutex", "recursive", "binary")

    @property
    def label(self) -> str:
        """Return "mutex 1", "binary semaphore 2"."""
        words = {
            "binary": "binary semaphore",
            "counting": "counting semaphore",
            "recursive": "recursive mutex",
        }
        return f"{words.get(self.kind, self.kind.replace('_', ' '))} {self.number}"


@dataclass(frozen=True)
class TraceEvent:
    """One event. ``time_us`` counts from trace_start(); ``mark`` is None unless ``kind`` is MARK."""

    time_us: int
    core: int
    kind: EventKind
    task: int
    argument: int
    mark: Mark | None = None


@dataclass(frozen=True)
class Trace:
    """Events in their order in time, and what they name.

    ``exact`` is False where preemption is not seen (a host's kernel decides it): then a task counts as in
    from its wake until it waits, and who runs is inferred from priorities.
    """

    events: tuple[TraceEvent, ...]
    tasks: Mapping[int, Task]
    objects: Mapping[int, SharedObject] = field(default_factory=dict)
    exact: bool = True

    @property
    def start_us(self) -> int:
        return self.events[0].time_us if self.events else 0

    @property
    def end_us(self) -> int:
        return self.events[-1].time_us if self.events else 0

    def task(self, number: int) -> Task:
        """Return a task, also one that the board did not name."""
        return self.tasks.get(number) or Task(number, f"task {number}", 0, None)

    def object(self, number: int | None) -> SharedObject:
        """Return an object, also one that the board did not name."""
        if number is None:
            return SharedObject(0, "something")
        return self.objects.get(number) or SharedObject(number, "object")
