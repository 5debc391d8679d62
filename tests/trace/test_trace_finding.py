# SPDX-License-Identifier: Apache-2.0
"""Why a task was late: priority inversion is told from what only looks like it."""

from __future__ import annotations

import re

import pytest

from hil.trace.events import Mark
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
from hil.trace.reconstruction import reconstruct
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
    TIMER,
    WAITS,
    Row,
    inherited,
    inverted,
    mark,
    on_a_host,
    trace_of,
)


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
    assert "inherited" in found.sentence
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
