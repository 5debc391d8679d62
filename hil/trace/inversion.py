"""Waits for a lock: who held it, and who kept the owner from running meanwhile.

A task H waits for what L holds. As long as L runs, that is the price of sharing, bounded by what L does with
the lock. Where a task M whose priority lies between the two runs on L's core instead, H waits for M, as long
as M likes: priority inversion (Sha, Rajkumar, Lehoczky 1990). A mutex lends H's priority to L, so that M
cannot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hil.trace.events import EventKind, Trace
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
        """Say whether tasks between the two cost more than hooks do."""
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
