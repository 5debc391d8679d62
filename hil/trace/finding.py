# SPDX-License-Identifier: Apache-2.0
"""Why a task was late: one sentence from the events round the outlier.

Waits for a lock: who held it, and who kept the owner from running meanwhile.

A task H waits for what L holds. As long as L runs, that is the price of sharing, bounded by what L does with
the lock. Where a task M whose priority lies between the two runs on L's core instead, H waits for M, as long
as M likes: priority inversion (Sha, Rajkumar, Lehoczky 1990). A mutex lends H's priority to L, so that M
cannot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from hil.base.units import find_unit, format_value
from hil.trace.events import LATE_MARKS, EventKind, Mark, Trace, TraceEvent
from hil.trace.timeline import Holding, Segment, State, Timeline

SHORTEST_US = (
    50  # below this, two events of one switch may lie apart where hooks and the host take their time
)


@dataclass(frozen=True)
class LockWait:
    """A task waited for what another one held.

    ``held_us`` is how long the owner ran meanwhile; ``kept_us`` how long each task of a priority between the
    two ran in its stead; ``inherited`` whether the owner was given the waiter's priority.
    """

    waiter: int
    object: int
    owner: int
    start_us: int
    end_us: int
    held_us: int
    kept_us: Mapping[int, int]
    inherited: bool

    @property
    def waited_us(self) -> int:
        return self.end_us - self.start_us

    @property
    def total_kept_us(self) -> int:
        return sum(self.kept_us.values())

    @property
    def is_inversion(self) -> bool:
        """Return whether tasks between the two cost more than hooks do."""
        return self.total_kept_us >= SHORTEST_US


def lock_waits(trace: Trace, timeline: Timeline) -> list[LockWait]:
    """Return every wait for an object that a task of lower priority held, in order of time."""
    found = [
        wait
        for segments in timeline.segments.values()
        for segment in _joined(segments)
        if segment.state is State.WAITING and segment.object is not None
        for wait in _waits_of(trace, timeline, segment)
    ]
    return sorted(found, key=lambda wait: (wait.start_us, wait.waiter))


def _joined(segments: Iterable[Segment]) -> Iterator[Segment]:
    """Yield segments, those that differ in nothing but priority as one."""
    last: Segment | None = None
    for one in segments:
        if last and (last.state, last.object, last.end_us) == (one.state, one.object, one.start_us):
            last = Segment(
                one.task, last.start_us, one.end_us, one.state, one.core, one.object, last.priority
            )
            continue
        if last:
            yield last
        last = one
    if last:
        yield last


def _waits_of(trace: Trace, timeline: Timeline, segment: Segment) -> Iterator[LockWait]:
    assert segment.object is not None
    own = trace.task(segment.task).priority
    owners = timeline.holders(segment.object, segment.start_us, segment.end_us)
    for owner in sorted({one.task for one in owners} - {segment.task}):
        if trace.task(owner).priority < own:
            yield _wait(trace, timeline, segment, [one for one in owners if one.task == owner])


def _wait(trace: Trace, timeline: Timeline, segment: Segment, held: list[Holding]) -> LockWait:
    assert segment.object is not None
    owner = held[0].task
    held_us, kept_us = 0, dict[int, int]()
    lent_us = _lent_us(trace, owner, segment)
    for one in held:
        start_us, end_us = max(one.start_us, segment.start_us), min(one.end_us, segment.end_us)
        for stretch in timeline.of(owner, start_us, end_us):
            if stretch.state is State.RUNNING:
                held_us += stretch.length_us
            elif stretch.state is State.READY and stretch.start_us >= (lent_us or 0):
                for task, us in _between(trace, timeline, segment.task, stretch):
                    kept_us[task] = kept_us.get(task, 0) + us
    return LockWait(
        segment.task,
        segment.object,
        owner,
        segment.start_us,
        segment.end_us,
        held_us,
        kept_us,
        lent_us is not None,
    )


def _between(trace: Trace, timeline: Timeline, waiter: int, ready: Segment) -> Iterator[tuple[int, int]]:
    """Yield who ran instead of the owner although the waiter's priority is higher, and for how long."""
    if ready.core is None:
        return
    low, high = ready.priority, trace.task(waiter).priority
    for other in timeline.running(ready.core, ready.start_us, ready.end_us):
        if low < other.priority < high:
            yield other.task, other.length_us


def _lent_us(trace: Trace, owner: int, segment: Segment) -> int | None:
    """Return when the owner was lent the waiter's priority, None where nobody did.

    A kernel lends it in the call that waits, so who ran before belongs to that call. The event may come just
    before the wait's own.
    """
    earliest_us, priority = segment.start_us - SHORTEST_US, trace.task(segment.task).priority
    lent = (event for event in trace.events if event.kind is EventKind.INHERITS and event.task == owner)
    times = [event.time_us for event in lent if event.argument >= priority]
    return next((us for us in times if earliest_us <= us <= segment.end_us), None)


INVERSION, HELD, PREEMPTED, HOST, TIMER, WAITED, OWN, NONE = (
    "priority inversion",
    "held",
    "preempted",
    "host late",
    "woken late",
    "waited",
    "ran itself",
    "none",
)


@dataclass(frozen=True)
class TraceFinding:
    """What the trace shows. ``kind`` is one of the words above; ``us`` how much of the lateness it explains.

    ``task`` was late, from ``planned_us`` to ``late_us`` in the trace; ``outlier_us`` is the bench's own
    figure, None where it marked none. ``wait`` is the wait for a lock that explains it.
    """

    kind: str
    sentence: str
    us: int = 0
    task: int | None = None
    planned_us: int | None = None
    late_us: int | None = None
    outlier_us: int | None = None
    wait: LockWait | None = None


def explain(trace: Trace, timeline: Timeline, *, host_late_us: int | None = None) -> TraceFinding:
    """Return why the task that the bench marked was late; without a mark, the longest inversion, if any.

    ``host_late_us`` is given where the sample is void because the host was late.
    """
    waits = lock_waits(trace, timeline)
    late = next((event for event in trace.events if event.mark in LATE_MARKS), None)
    if late is None:
        return _without_outlier(trace, waits)
    planned_us = _planned_us(trace, late)
    found = TraceFinding(NONE, "", 0, late.task, planned_us, late.time_us, late.argument)
    if host_late_us is not None:
        sentence = f"the host was late by {duration(host_late_us)}: the sample is void"
        return replace(found, kind=HOST, sentence=sentence, us=host_late_us)
    causes = list(_causes(trace, timeline, waits, late.task, planned_us, late.time_us))
    if not causes:
        sentence = f"the trace does not show what {trace.task(late.task).label} did when it was late"
        return replace(found, sentence=sentence)
    cause = max(causes, key=lambda each: each.us)
    return replace(found, kind=cause.kind, sentence=cause.sentence, us=cause.us, wait=cause.wait)


def duration(us: float) -> str:
    """Write a duration as a person reads it: 3.1 ms."""
    return format_value(us, find_unit("us"))


def _planned_us(trace: Trace, late: TraceEvent) -> int:
    """Return when the task should have woken: the bench's last word on it before the late mark."""
    for event in reversed(trace.events):
        before = event.task == late.task and event.time_us <= late.time_us
        if before and event.mark in (Mark.PLANNED, Mark.WOKE):
            return event.time_us - event.argument
    return late.time_us - late.argument


def _without_outlier(trace: Trace, waits: list[LockWait]) -> TraceFinding:
    inversions = [wait for wait in waits if wait.is_inversion]
    if not inversions:
        return TraceFinding(NONE, "no outlier was marked and no priority inversion is in the trace")
    worst = max(inversions, key=lambda wait: wait.total_kept_us)
    return TraceFinding(
        INVERSION, inversion_sentence(trace, worst), worst.total_kept_us, worst.waiter, wait=worst
    )


def _causes(
    trace: Trace, timeline: Timeline, waits: list[LockWait], task: int, start_us: int, end_us: int
) -> Iterator[TraceFinding]:
    """Yield everything that the task's states between plan and mark say, with its share in us."""
    segments = timeline.of(task, start_us, end_us)
    for wait in waits:
        if wait.waiter == task and wait.start_us < end_us and wait.end_us > start_us:
            share = min(wait.end_us, end_us) - max(wait.start_us, start_us)
            kind = INVERSION if wait.is_inversion else HELD
            write = inversion_sentence if wait.is_inversion else held_sentence
            yield TraceFinding(kind, write(trace, wait), share, wait=wait)
    for segment in segments:
        if segment.state is State.WAITING and not any(_covers(wait, segment) for wait in waits):
            yield _waited(trace, timeline, segment, start_us)
    yield from _preemptions(trace, timeline, segments)
    yield from _states(trace, segments)


def _covers(wait: LockWait, segment: Segment) -> bool:
    within = wait.start_us <= segment.start_us and segment.end_us <= wait.end_us
    return within and (wait.waiter, wait.object) == (segment.task, segment.object)


def _waited(trace: Trace, timeline: Timeline, segment: Segment, planned_us: int) -> TraceFinding:
    name, waited_for = trace.task(segment.task).label, trace.object(segment.object)
    if segment.start_us <= planned_us:  # it slept until somebody's timer woke it
        return _woken_late(trace, name, segment.length_us)
    holders = timeline.holders(waited_for.number, segment.start_us, segment.end_us)
    owners = dict.fromkeys(trace.task(one.task).label for one in holders if one.task != segment.task)
    by = f", held by {' and '.join(owners)}" if owners else ""
    sentence = f"{name} waited {duration(segment.length_us)} for {waited_for.label}{by}"
    return TraceFinding(WAITED, sentence, segment.length_us)


def _woken_late(trace: Trace, name: str, us: int) -> TraceFinding:
    what = "tick or timer" if trace.exact else "the host's timer"
    sentence = f"woken late: {what} made {name} ready {duration(us)} after it was planned"
    return TraceFinding(TIMER, sentence, us)


def _preemptions(trace: Trace, timeline: Timeline, segments: list[Segment]) -> Iterator[TraceFinding]:
    """Yield who ran while the task was ready, each with its sum."""
    sums: dict[int, int] = {}
    for ready in segments:
        if ready.state is State.READY and ready.core is not None:
            for other in timeline.running(ready.core, ready.start_us, ready.end_us):
                sums[other.task] = sums.get(other.task, 0) + other.length_us
    for other_task, us in sums.items():
        late = trace.task(segments[0].task).label
        by = trace.task(other_task)
        sentence = (
            f"preempted: {late} was ready, while {by.name} (priority {by.priority}) ran for {duration(us)}"
        )
        yield TraceFinding(PREEMPTED, sentence, us)


def _states(trace: Trace, segments: list[Segment]) -> Iterator[TraceFinding]:
    """Yield what the task did of itself: it slept on, or ran."""
    sums: Mapping[State, int] = {
        state: sum(one.length_us for one in segments if one.state is state) for state in State
    }
    name = trace.task(segments[0].task).label if segments else ""
    if sums[State.SLEEPING]:
        yield _woken_late(trace, name, sums[State.SLEEPING])
    if sums[State.RUNNING]:
        sentence = f"{name} ran for {duration(sums[State.RUNNING])} itself; nothing kept it from running"
        yield TraceFinding(OWN, sentence, sums[State.RUNNING])


def inversion_sentence(trace: Trace, wait: LockWait) -> str:
    """Return who waited, who held, who was in the way and whether anybody inherited."""
    ranked = sorted(wait.kept_us.items(), key=lambda item: (-item[1], item[0]))
    keepers = " and ".join(trace.task(task).label for task, _ in ranked)
    owner = trace.task(wait.owner).label
    inherited = f"although {owner} inherited a priority" if wait.inherited else "nobody inherited"
    return (
        f"priority inversion: {_waited_for(trace, wait)}, held by {owner}, which {keepers} kept from running "
        f"for {duration(wait.total_kept_us)}; {inherited}"
    )


def held_sentence(trace: Trace, wait: LockWait) -> str:
    """Return the price of sharing: the owner ran while the other one waited."""
    owner = trace.task(wait.owner)
    inherited = ", with the priority that it inherited" if wait.inherited else ""
    return (
        f"held by {owner.label} for {duration(wait.held_us)}: {_waited_for(trace, wait)} while {owner.name} "
        f"ran{inherited}; no priority inversion"
    )


def _waited_for(trace: Trace, wait: LockWait) -> str:
    waiter = trace.task(wait.waiter).label
    return f"{waiter} waited {duration(wait.waited_us)} for {trace.object(wait.object).label}"


def marks_of(trace: Trace) -> list[TraceEvent]:
    """Return what the bench marked, in order."""
    return [event for event in trace.events if event.kind is EventKind.MARK]
