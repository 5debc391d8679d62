# SPDX-License-Identifier: Apache-2.0
"""Scheduler events for tests: what a board would have sent of a shared lock, with and without inheritance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hil.model import Case, Series
from hil.trace.events import EventKind, Mark, Trace
from hil.trace.reading import read_trace

Row = tuple[int, int, int, int, int]  # time_us, core, event, task, argument

COLUMNS = ("time_us", "core", "event", "task", "argument")
JITTER, LOW, MIDDLE, TIMER, IDLE = 1, 2, 3, 4, 5
TASKS = {
    "task_1": "jitter:20:1",
    "task_2": "low:6:1",
    "task_3": "middle:10:1",
    "task_4": "esp_timer:22:0",
    "task_5": "IDLE1:0:1",
}
IN, OUT, READY = EventKind.SWITCHED_IN, EventKind.SWITCHED_OUT, EventKind.READY
WAITS, TAKEN, GIVEN = EventKind.WAITS, EventKind.TAKEN, EventKind.GIVEN
INHERITS, DISINHERITS, DELAYS = EventKind.INHERITS, EventKind.DISINHERITS, EventKind.DELAYS


def mark(which: Mark) -> int:
    return int(EventKind.MARK) + int(which)


def series_of(rows: Iterable[Row], *, kind: str = "binary", device: dict[str, str] | None = None) -> Series:
    """Return what `run trace` gives for these events; object 1 is of ``kind``."""
    columns = {
        name: tuple(int(row[n]) for row in rows) for rows in [list(rows)] for n, name in enumerate(COLUMNS)
    }
    facts = {**TASKS, "object_1": kind, **(device or {})}
    return Series(Case("trace", {}), columns, 0, "esp_timer", "ab" * 32, "cd" * 32, 1, facts)


def trace_of(rows: Iterable[Row], *, kind: str = "binary", exact: bool = True) -> Trace:
    series = series_of(rows, kind=kind)
    return read_trace(series.columns, series.device, exact=exact)


def inverted() -> list[Row]:
    """A chip whose lock is a binary semaphore: middle runs for 3 ms while low holds what jitter wants."""
    return [
        (0, 1, IN, LOW, 0),
        (0, 0, IN, TIMER, 0),
        (100, 1, TAKEN, LOW, 1),
        (400, 0, WAITS, TIMER, 2),
        (400, 0, OUT, TIMER, 0),
        (700, 1, READY, MIDDLE, 10),
        (700, 1, OUT, LOW, 0),
        (705, 1, IN, MIDDLE, 0),
        (1010, 1, READY, JITTER, 20),
        (1010, 1, OUT, MIDDLE, 0),
        (1012, 1, IN, JITTER, 0),
        (1012, 1, mark(Mark.WOKE), JITTER, 12),
        (1020, 1, WAITS, JITTER, 1),
        (1020, 1, OUT, JITTER, 0),
        (1025, 1, IN, MIDDLE, 0),
        (4025, 1, DELAYS, MIDDLE, 0),
        (4025, 1, OUT, MIDDLE, 0),
        (4030, 1, IN, LOW, 0),
        (4120, 1, GIVEN, LOW, 1),
        (4120, 1, READY, JITTER, 20),
        (4121, 1, OUT, LOW, 0),
        (4125, 1, IN, JITTER, 0),
        (4126, 1, TAKEN, JITTER, 1),
        (4127, 1, mark(Mark.ACQUIRED), JITTER, 3115),
        (4127, 1, mark(Mark.OUTLIER), JITTER, 3127),
        (4140, 1, GIVEN, JITTER, 1),
        (4150, 1, DELAYS, JITTER, 0),
        (4150, 1, OUT, JITTER, 0),
        (4155, 1, IN, LOW, 0),
        (4400, 1, DELAYS, LOW, 0),
        (4400, 1, OUT, LOW, 0),
        (4402, 1, IN, IDLE, 0),
        (4500, 0, IN, TIMER, 0),
    ]


def inherited() -> list[Row]:
    """The same chip with a mutex: low gets jitter's priority and runs at once."""
    return [
        *[row for row in inverted() if row[0] <= 1020],
        (1020, 1, INHERITS, LOW, 20),
        (1022, 1, READY, LOW, 20),
        (1025, 1, IN, LOW, 0),
        (1400, 1, GIVEN, LOW, 1),
        (1400, 1, DISINHERITS, LOW, 6),
        (1400, 1, READY, JITTER, 20),
        (1402, 1, OUT, LOW, 0),
        (1405, 1, IN, JITTER, 0),
        (1406, 1, TAKEN, JITTER, 1),
        (1407, 1, mark(Mark.ACQUIRED), JITTER, 395),
        (1407, 1, mark(Mark.OUTLIER), JITTER, 407),
        (1450, 1, GIVEN, JITTER, 1),
        (1460, 1, DELAYS, JITTER, 0),
        (1460, 1, OUT, JITTER, 0),
        (1465, 1, IN, MIDDLE, 0),
        (1800, 1, mark(Mark.PLANNED), MIDDLE, 0),
    ]


def on_a_host(rows: Sequence[Row]) -> list[Row]:
    """The same as a host sees it: a task is in from its wake until it waits, preemption has no event."""
    found: list[Row] = []
    resting: set[int] = set()
    inside: set[int] = set()
    for time_us, core, event, task, argument in sorted(rows, key=lambda row: row[0]):
        if task == IDLE:
            continue
        if event in (WAITS, DELAYS):
            resting.add(task)
        if event == OUT and task not in resting:
            continue
        if event == OUT:
            resting.discard(task)
            inside.discard(task)
        if event == IN and task in inside:
            continue
        if event == IN:
            inside.add(task)
        found.append((time_us, core, event, task, argument))
    return found
