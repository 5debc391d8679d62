# SPDX-License-Identifier: Apache-2.0
"""Why a task was late: priority inversion is told from what only looks like it."""

from __future__ import annotations

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


@pytest.mark.parametrize("exact", [True, False])
def test_an_inversion_is_named_with_its_tasks(exact: bool) -> None:
    """Who waited how long for what, who held it, who kept the owner from running, and who inherited."""
    found = finding(inverted() if exact else on_a_host(inverted()), exact=exact)
    assert found.sentence == (
        "priority inversion: jitter (20) waited 3.1 ms for binary semaphore 1, held by low (6), which "
        "middle (10) kept from running for 3 ms; nobody inherited"
    )
    assert (found.kind, found.task, found.outlier_us) == (INVERSION, JITTER, 3127)
    assert (found.planned_us, found.late_us) == (1000, 4127)
    assert found.wait
    assert (found.wait.owner, found.wait.object, found.wait.waited_us) == (LOW, 1, 3100)
    assert sum(found.wait.kept_us.values()) == pytest.approx(3000, abs=10)
    assert set(found.wait.kept_us) == {MIDDLE}


@pytest.mark.parametrize("exact", [True, False])
def test_a_lock_that_is_held_is_no_inversion(exact: bool) -> None:
    """Where the owner inherits and runs, the wait is the price of sharing."""
    found = finding(inherited() if exact else on_a_host(inherited()), kind="mutex", exact=exact)
    assert found.kind == HELD
    assert found.sentence.startswith("held by low (6) for 3")
    assert found.sentence.endswith("with the priority that it inherited; no priority inversion")
    assert found.wait
    assert found.wait.inherited
    assert not found.wait.is_inversion


def test_a_binary_semaphore_whose_owner_runs_is_no_inversion() -> None:
    """Not the missing inheritance is the fault, but what it lets happen."""
    rows = [row for row in inverted() if row[3] != MIDDLE]
    (wait,) = lock_waits(trace := trace_of(rows), reconstruct(trace))
    assert (wait.total_kept_us, wait.inherited, wait.is_inversion) == (0, False, False)


def test_a_task_above_the_waiter_makes_no_inversion() -> None:
    """What keeps the owner from running has to lie between the two; above both, it is a preemption."""
    rows = [(*row[:4], 21) if row[2:4] == (READY, MIDDLE) else row for row in inverted()]
    trace = trace_of(rows)
    (wait,) = lock_waits(trace, reconstruct(trace))
    assert wait.kept_us == {}


def test_a_signal_is_no_lock() -> None:
    """Who waits for what it took itself last (a binary semaphore as a signal) waits for no owner."""
    rows = [
        (0, 1, IN, JITTER, 0),
        (5, 1, TAKEN, JITTER, 1),
        (9, 1, WAITS, JITTER, 1),
        (9, 1, OUT, JITTER, 0),
        (10, 1, IN, MIDDLE, 0),
        (900, 1, GIVEN, MIDDLE, 1),
        (900, 1, READY, JITTER, 20),
        (900, 1, OUT, MIDDLE, 0),
        (901, 1, IN, JITTER, 0),
    ]
    trace = trace_of(rows)
    assert lock_waits(trace, reconstruct(trace)) == []


def late(rows: list[Row], at_us: int, late_us: int) -> list[Row]:
    return [
        *rows,
        (at_us, 1, mark(Mark.WOKE), JITTER, late_us),
        (at_us, 1, mark(Mark.OUTLIER), JITTER, late_us),
    ]


ASLEEP = [(0, 1, IN, JITTER, 0), (10, 1, DELAYS, JITTER, 0), (10, 1, OUT, JITTER, 0)]


def test_a_preemption_names_who_ran() -> None:
    """A task that is ready in time and does not run was kept by what ran."""
    rows = [
        *ASLEEP,
        (11, 1, IN, TIMER, 0),
        (1000, 1, READY, JITTER, 20),
        (2200, 1, WAITS, TIMER, 2),
        (2200, 1, OUT, TIMER, 0),
        (2201, 1, IN, JITTER, 0),
    ]
    found = finding(late(rows, 2205, 1205))
    assert found.kind == PREEMPTED
    assert found.sentence == (
        "preempted: jitter (20) was ready, while esp_timer (priority 22) ran for 1.2 ms"
    )


def test_a_late_timer_is_told_from_a_preemption() -> None:
    """A task that nobody made ready before was woken late; that is the tick's or the timer's."""
    rows = [*ASLEEP, (2000, 1, READY, JITTER, 20), (2002, 1, IN, JITTER, 0)]
    found = finding(late(rows, 2005, 1005))
    assert found.kind == WOKEN_LATE
    assert "tick or timer made jitter (20) ready 1 ms after it was planned" in found.sentence


def test_a_late_notification_is_a_late_timer() -> None:
    """A task that a timer's callback wakes waits for a notification instead of sleeping."""
    rows = [
        (0, 1, IN, JITTER, 0),
        (10, 1, WAITS, JITTER, 3),
        (10, 1, OUT, JITTER, 0),
        (2000, 1, READY, JITTER, 20),
    ]
    assert finding(late([*rows, (2002, 1, IN, JITTER, 0)], 2005, 1005)).kind == WOKEN_LATE


def test_the_host_comes_first() -> None:
    """Where the sample is void, the trace of a host explains nothing of the firmware."""
    found = finding(on_a_host(inverted()), exact=False, host_late_us=5200)
    assert (found.kind, found.sentence) == (HOST, "the host was late by 5.2 ms: the sample is void")


def test_a_wait_without_an_owner_says_so() -> None:
    """A queue has none, so who should have sent is not known."""
    rows = [
        (0, 1, IN, JITTER, 0),
        (1000, 1, mark(Mark.WOKE), JITTER, 1),
        (1001, 1, WAITS, JITTER, 2),
        (1001, 1, OUT, JITTER, 0),
        (1901, 1, IN, JITTER, 0),
        (1902, 1, mark(Mark.OUTLIER), JITTER, 903),
    ]
    found = finding(rows)
    assert (found.kind, found.sentence) == (WAITED, "jitter (20) waited 900 µs for object 2")


def test_without_a_mark_the_longest_inversion_counts() -> None:
    """A trace to the end of a case may hold one although nothing was late enough to be marked."""
    unmarked = [row for row in inverted() if row[2] < 32]
    assert finding(unmarked).kind == INVERSION
    assert finding([row for row in inherited() if row[2] < 32], kind="mutex").kind == NONE
    assert finding([]).kind == NONE


def test_who_runs_until_the_priority_is_lent_is_no_inversion() -> None:
    """A kernel lends in the call that waits; a host that is late in it shows another task."""
    rows = [row for row in inherited() if row[0] <= 1020 and row[2] != INHERITS]
    rows += [(1020, 1, IN, MIDDLE, 0), (1900, 1, INHERITS, LOW, 20), (1905, 1, IN, LOW, 0)]
    rows += [(2000, 1, GIVEN, LOW, 1), (2000, 1, READY, JITTER, 20)]
    trace = trace_of(rows, kind="mutex")
    (wait,) = lock_waits(trace, reconstruct(trace))
    assert (wait.waited_us, wait.kept_us, wait.inherited) == (980, {}, True)


def test_what_hooks_cost_is_no_inversion() -> None:
    """Two events of one switch lie some microseconds apart; that is no task in between."""
    rows = [row for row in inverted() if row[0] <= 1020]
    rows += [(1020, 1, IN, MIDDLE, 0), (1020 + SHORTEST_US - 1, 1, IN, LOW, 0)]
    rows += [(1400, 1, GIVEN, LOW, 1), (1400, 1, READY, JITTER, 20)]
    trace = trace_of(rows)
    (wait,) = lock_waits(trace, reconstruct(trace))
    assert wait.total_kept_us == SHORTEST_US - 1
    assert not wait.is_inversion
