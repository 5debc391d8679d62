# SPDX-License-Identifier: Apache-2.0
"""From events to who ran when: exact where the kernel told, inferred where a host's did not.

Why a task was late: priority inversion is told from what only looks like it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.base.errors import FirmwareError
from hil.trace.events import EventKind, Mark
from hil.trace.finding import (
    HELD,
    HOST,
    INVERSION,
    NONE,
    PREEMPTED,
    SHORTEST_US,
    WAITED,
    LockWait,
    TraceFinding,
    explain,
    lock_waits,
)
from hil.trace.finding import TIMER as WOKEN_LATE
from hil.trace.reading import read_trace
from hil.trace.reconstruction import reconstruct
from hil.trace.timeline import State, Timeline
from tests.trace.trace_events import (
    DELAYS,
    GIVEN,
    IN,
    INHERITS,
    JITTER,
    LOW,
    MIDDLE,
    OUT,
    READY,
    TAKEN,
    TASKS,
    TIMER,
    WAITS,
    Row,
    inherited,
    inverted,
    mark,
    on_a_host,
    series_of,
    trace_of,
)

PEER = 6
NUMBERS = [*(int(kind) for kind in EventKind), *(int(EventKind.MARK) + int(mark) for mark in Mark)]


def states(timeline: Timeline, task: int) -> list[tuple[int, int, str]]:
    return [(one.start_us, one.end_us, one.state.value) for one in timeline.segments[task]]


def test_names_are_read() -> None:
    """Tasks have name, priority and core, "-" is none; objects have a kind; marks are told apart."""
    series = series_of([(5, 0, 34, 6, 17)], device={"task_6": "a:b:3:-", "object_2": "event_group"})
    trace = read_trace(series.columns, series.device, exact=True)
    assert (trace.tasks[6].name, trace.tasks[6].priority, trace.tasks[6].core) == ("a:b", 3, None)
    assert trace.tasks[1].label == "jitter (20)"
    assert [trace.object(number).label for number in (1, 2)] == ["binary semaphore 1", "event group 2"]
    assert (trace.events[0].kind, trace.events[0].mark) == (EventKind.MARK, Mark.OUTLIER)


@pytest.mark.parametrize(
    ("event", "device", "named"),
    [
        (20, {}, "event 20 at 5 us"),
        (63, {}, "event 63"),
        (1, {"task_9": "low:x:1"}, "task_9='low:x:1'"),
        (1, {"object_3": "spoon"}, "object_3='spoon'"),
    ],
)
def test_what_cannot_be_read_is_named(event: int, device: dict[str, str], named: str) -> None:
    """An unknown event, a name of another form and missing columns are the firmware's, and are quoted."""
    series = series_of([(5, 0, event, 1, 0)], device=device)
    with pytest.raises(FirmwareError, match=named):
        read_trace(series.columns, series.device, exact=True)
    with pytest.raises(FirmwareError, match="event, task, argument"):
        read_trace({"time_us": (1,), "core": (0,)}, {}, exact=True)


def test_switches_of_a_chip_are_exact() -> None:
    """A task runs from IN to OUT; then it does what it said before, and is ready where it said nothing."""
    timeline = reconstruct(trace_of(inverted()))
    assert states(timeline, LOW) == [
        (0, 700, "running"),
        (700, 4030, "ready"),
        (4030, 4121, "running"),
        (4121, 4155, "ready"),
        (4155, 4400, "running"),
        (4400, 4500, "sleeping"),
    ]
    assert states(timeline, JITTER)[:3] == [
        (1010, 1012, "ready"),
        (1012, 1020, "running"),
        (1020, 4120, "waiting"),
    ]
    waiting = timeline.segments[JITTER][2]
    assert (waiting.object, waiting.core) == (1, 1)
    assert [(held.task, held.start_us, held.end_us) for held in timeline.holdings] == [
        (LOW, 100, 4120),
        (JITTER, 4126, 4140),
    ]


def test_who_runs_on_a_host_is_inferred() -> None:
    """Without switches by preemption the highest task that is in runs; the others are ready."""
    timeline = reconstruct(trace_of(on_a_host(inverted()), exact=False))
    assert (705, 1012, "running") in states(timeline, MIDDLE)
    assert (1012, 1020, "ready") in states(timeline, MIDDLE)
    assert (1020, 4025, "running") in states(timeline, MIDDLE)
    assert (705, 4025, "ready") in states(timeline, LOW)


def test_of_equal_priority_the_first_runs_on() -> None:
    """FreeRTOS lets a task run until it rests where the one that comes has no higher priority."""
    rows = [(0, 1, IN, LOW, 0), (10, 1, IN, PEER, 0), (20, 1, DELAYS, LOW, 0), (20, 1, OUT, LOW, 0)]
    series = series_of([*rows, (30, 1, TAKEN, PEER, 1)], device={f"task_{PEER}": "peer:6:1"})
    timeline = reconstruct(read_trace(series.columns, series.device, exact=False))
    assert states(timeline, LOW)[0] == (0, 20, "running")
    assert states(timeline, PEER) == [(10, 20, "ready"), (20, 30, "running")]


def test_an_inherited_priority_decides_on_a_host() -> None:
    """The owner of a mutex runs before a task that is above its own priority, as long as it inherits."""
    timeline = reconstruct(trace_of(on_a_host(inherited()), kind="mutex", exact=False))
    low = [one for one in timeline.segments[LOW] if one.state is State.RUNNING and one.priority == 20]
    assert [(one.start_us, one.end_us) for one in low] == [(1020, 1400)]


@pytest.mark.parametrize(
    ("rows", "task", "found"),
    [
        # A ring begins in the middle: who waits, takes or sleeps there was running.
        (
            [(10, 1, TAKEN, LOW, 1), (50, 1, WAITS, LOW, 2), (50, 1, OUT, LOW, 0), (60, 1, IN, MIDDLE, 0)],
            LOW,
            [(10, 50, "running", 1, 6), (50, 60, "waiting", 1, 6)],
        ),
        # A segment has one priority in force.
        (
            [(0, 1, IN, LOW, 0), (5, 1, INHERITS, LOW, 20), (9, 1, DELAYS, LOW, 0), (9, 1, OUT, LOW, 0)],
            LOW,
            [(0, 5, "running", 1, 6), (5, 9, "running", 1, 20)],
        ),
        # FreeRTOS lists a running task anew when its priority changes: it is not out for that.
        (
            [
                *[(0, 0, IN, TIMER, 0), (5, 0, READY, TIMER, 22)],
                (9, 0, WAITS, TIMER, 1),
                (9, 0, OUT, TIMER, 0),
            ],
            TIMER,
            [(0, 9, "running", 0, 22)],
        ),
        # Where a chip's ring lost the event that took a task off a core, its next one counts.
        (
            [(0, 0, IN, LOW, 0), (10, 1, IN, LOW, 0), (20, 0, WAITS, TIMER, 1), (30, 1, OUT, LOW, 0)],
            LOW,
            [(0, 10, "running", 0, 6), (10, 30, "running", 1, 6)],
        ),
    ],
    ids=["before the first event", "raised priority", "listed anew", "moved"],
)
def test_a_stretch_has_one_state_core_and_priority(rows: list[Row], task: int, found: object) -> None:
    """It begins and ends with the event that changes one of them, or where an event was lost."""
    segments = reconstruct(trace_of(rows)).segments[task]
    assert [(one.start_us, one.end_us, one.state.value, one.core, one.priority) for one in segments] == found


ROWS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.integers(0, 1),
        st.sampled_from(NUMBERS),
        st.integers(0, len(TASKS) + 1),
        st.integers(0, 3),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(rows=ROWS, exact=st.booleans())
def test_at_most_one_task_runs_on_a_core(rows: list[Row], exact: bool) -> None:
    """Whatever the board sends: no two tasks on a core at once, no task on two, no task in two states."""
    trace = trace_of(rows, exact=exact)
    timeline = reconstruct(trace)
    by_core = defaultdict(list)
    for segments in timeline.segments.values():
        assert all(one.end_us <= other.start_us for one, other in pairwise(segments))
        assert all(trace.start_us <= one.start_us < one.end_us <= trace.end_us for one in segments)
        for one in segments:
            if one.state is State.RUNNING:
                assert one.core is not None
                by_core[one.core].append((one.start_us, one.end_us))
    for stretches in by_core.values():
        assert all(end <= start for (_, end), (start, _) in pairwise(sorted(stretches)))


def test_times_go_on_where_32_bits_end() -> None:
    """A board that traces for more than 71 minutes begins anew; the events stay in order."""
    rows = [
        (2**32 - 5, 1, IN, LOW, 0),
        (2**32 - 7, 1, READY, LOW, 6),
        (10, 1, DELAYS, LOW, 0),
        (10, 1, OUT, LOW, 0),
    ]
    trace = trace_of(rows)
    assert [event.kind for event in trace.events] == [READY, IN, DELAYS, OUT]
    assert trace.end_us - trace.start_us == 17


def finding(rows: list[Row], *, kind: str = "binary", exact: bool = True, **more: int) -> TraceFinding:
    trace = trace_of(rows, kind=kind, exact=exact)
    return explain(trace, reconstruct(trace), **more)


def waits(rows: list[Row], *, kind: str = "binary") -> list[LockWait]:
    trace = trace_of(rows, kind=kind)
    return lock_waits(trace, reconstruct(trace))


def seen(rows: list[Row], exact: bool) -> list[Row]:
    return rows if exact else on_a_host(rows)


@pytest.mark.parametrize("exact", [True, False])
def test_an_inversion_is_named_with_its_tasks(exact: bool) -> None:
    """Who waited how long for what, who held it, who kept the owner from running, and who inherited."""
    found = finding(seen(inverted(), exact), exact=exact)
    told = ["jitter (20)", "3.1 ms", "semaphore 1", "low (6)", "middle (10)", "3 ms", "nobody"]
    assert re.findall(r"[\d.]+ ms|\w+ \(\d+\)|semaphore \d|nobody", found.sentence) == told
    assert (found.kind, found.task, found.outlier_us) == (INVERSION, JITTER, 3127)
    assert (found.planned_us, found.late_us) == (1000, 4127)
    assert found.wait
    assert (found.wait.owner, found.wait.object, found.wait.waited_us) == (LOW, 1, 3100)
    assert found.wait.kept_us == {MIDDLE: pytest.approx(3000, abs=10)}


@pytest.mark.parametrize("exact", [True, False])
def test_a_lock_that_is_held_is_no_inversion(exact: bool) -> None:
    """Where the owner inherits and runs, the wait is the price of sharing."""
    found = finding(seen(inherited(), exact), kind="mutex", exact=exact)
    assert found.kind == HELD
    assert found.sentence.startswith("held by low (6) for 3")
    assert "that it inherited" in found.sentence
    assert found.wait
    assert (found.wait.inherited, found.wait.is_inversion) == (True, False)


WAITING = [row for row in inverted() if row[0] <= 1020]


def given_at(us: int) -> list[Row]:
    return [(us, 1, GIVEN, LOW, 1), (us, 1, READY, JITTER, 20)]


@pytest.mark.parametrize(
    ("rows", "kind", "found"),
    [
        # Not the missing inheritance is the fault, but what it lets happen.
        ([row for row in inverted() if row[3] != MIDDLE], "binary", ({}, False)),
        # What keeps the owner from running has to lie between the two; above both, it is a preemption.
        ([(*r[:4], 21) if r[2:4] == (READY, MIDDLE) else r for r in inverted()], "binary", ({}, False)),
        # A kernel lends in the call that waits; a host that is late in it shows another task.
        (
            [
                *WAITING,
                *[(1020, 1, IN, MIDDLE, 0), (1900, 1, INHERITS, LOW, 20), (1905, 1, IN, LOW, 0)],
                *given_at(2000),
            ],
            "mutex",
            ({}, True),
        ),
        # Two events of one switch lie some microseconds apart; that is no task in between.
        (
            [*WAITING, (1020, 1, IN, MIDDLE, 0), (1019 + SHORTEST_US, 1, IN, LOW, 0), *given_at(1400)],
            "binary",
            ({MIDDLE: SHORTEST_US - 1}, False),
        ),
    ],
    ids=["owner runs", "above the waiter", "until it is lent", "cost of hooks"],
)
def test_what_only_looks_like_an_inversion_is_none(
    rows: list[Row], kind: str, found: tuple[dict[int, int], bool]
) -> None:
    """An inversion is a task between the two that ran for longer than hooks take, before anybody lent."""
    (wait,) = waits(rows, kind=kind)
    assert (wait.kept_us, wait.inherited, wait.is_inversion) == (*found, False)


def test_a_signal_is_no_lock() -> None:
    """Who waits for what it took itself last (a binary semaphore as a signal) waits for no owner."""
    took = [(0, 1, IN, JITTER, 0), (5, 1, TAKEN, JITTER, 1), (9, 1, WAITS, JITTER, 1), (9, 1, OUT, JITTER, 0)]
    gave = [(900, 1, GIVEN, MIDDLE, 1), (900, 1, READY, JITTER, 20), (900, 1, OUT, MIDDLE, 0)]
    assert waits([*took, (10, 1, IN, MIDDLE, 0), *gave, (901, 1, IN, JITTER, 0)]) == []


BEGUN = (0, 1, IN, JITTER, 0)
ASLEEP = [BEGUN, (10, 1, DELAYS, JITTER, 0), (10, 1, OUT, JITTER, 0)]
NOTIFIED = [BEGUN, (10, 1, WAITS, JITTER, 3), (10, 1, OUT, JITTER, 0)]
WOKEN = [(2000, 1, READY, JITTER, 20), (2002, 1, IN, JITTER, 0)]
TIMER_RUNS = [(11, 1, IN, TIMER, 0), (1000, 1, READY, JITTER, 20), (2200, 1, WAITS, TIMER, 2)]


@pytest.mark.parametrize(
    ("rows", "late_us", "kind", "said"),
    [
        # A task that is ready in time and does not run was kept by what ran.
        (
            [*ASLEEP, *TIMER_RUNS, (2200, 1, OUT, TIMER, 0), (2201, 1, IN, JITTER, 0)],
            1205,
            PREEMPTED,
            r"esp_timer \(priority 22\) .* 1\.2 ms",
        ),
        # One that nobody made ready before was woken late, also where it waits for a timer's callback.
        ([*ASLEEP, *WOKEN], 1005, WOKEN_LATE, r"tick or timer .*jitter \(20\) .* 1 ms"),
        ([*NOTIFIED, *WOKEN], 1005, WOKEN_LATE, "tick or timer"),
        # A queue has no owner, so who should have sent is not known.
        (
            [
                *[BEGUN, (1000, 1, mark(Mark.WOKE), JITTER, 1), (1001, 1, WAITS, JITTER, 2)],
                *[(1001, 1, OUT, JITTER, 0), (1901, 1, IN, JITTER, 0)],
            ],
            0,
            WAITED,
            "900 µs for object 2$",
        ),
    ],
)
def test_the_cause_is_what_the_task_did_when_it_was_late(
    rows: list[Row], late_us: int, kind: str, said: str
) -> None:
    """Preempted, woken late or waiting are told apart, with who and how long."""
    at_us = rows[-1][0] + 3
    marked = [(at_us, 1, mark(Mark.WOKE), JITTER, late_us)] if late_us else []
    found = finding([*rows, *marked, (at_us, 1, mark(Mark.OUTLIER), JITTER, late_us or 904)])
    assert found.kind == kind
    assert re.search(said, found.sentence)


def test_the_host_comes_first() -> None:
    """Where the sample is void, the trace of a host explains nothing of the firmware."""
    found = finding(on_a_host(inverted()), exact=False, host_late_us=5200)
    assert (found.kind, found.us) == (HOST, 5200)
    assert "5.2 ms" in found.sentence


def test_without_a_mark_the_longest_inversion_counts() -> None:
    """A trace to the end of a case may hold one although nothing was late enough to be marked."""
    unmarked = [row for row in inverted() if row[2] < 32]
    assert finding(unmarked).kind == INVERSION
    assert finding([row for row in inherited() if row[2] < 32], kind="mutex").kind == NONE
    assert finding([]).kind == NONE
