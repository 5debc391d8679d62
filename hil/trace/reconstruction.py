# SPDX-License-Identifier: Apache-2.0
"""Which task ran when on which core: as the kernel told, or inferred from priorities.

Follows a trace's events and keeps, of each task, the stretch that it is in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace

from hil.trace.events import EventKind, Trace, TraceEvent
from hil.trace.timeline import Holding, Segment, State, Timeline

_Rest = tuple[State, int | None]  # what a task that is out does, and which object it waits for
_UNTIL_OUT: Mapping[EventKind, State] = {
    EventKind.WAITS: State.WAITING,
    EventKind.DELAYS: State.SLEEPING,
    EventKind.SUSPENDED: State.SUSPENDED,
}
# what only a task does that runs
ACTS = {
    EventKind.SWITCHED_OUT,
    EventKind.WAITS,
    EventKind.TAKEN,
    EventKind.GIVEN,
    EventKind.DELAYS,
    EventKind.MARK,
}


class Builder(ABC):
    """Keeps the segment that is open for each task."""

    default: _Rest = (State.READY, None)  # of a task that is out without a word

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.now_us = trace.start_us
        self._open: dict[int, Segment] = {}
        self._closed: dict[int, list[Segment]] = {}
        self._rests: dict[int, _Rest] = {}
        self._priorities = {number: task.priority for number, task in trace.tasks.items()}

    @abstractmethod
    def begin(self) -> None:
        """Find out who was in when the trace began."""

    def take(self, event: TraceEvent) -> None:
        self.now_us = event.time_us
        if event.kind in _UNTIL_OUT:
            waits = event.kind is EventKind.WAITS
            self._rests[event.task] = (_UNTIL_OUT[event.kind], event.argument if waits else None)
            self.rests(event)
        elif event.kind in (EventKind.INHERITS, EventKind.DISINHERITS):
            self._change_priority(event)
        elif event.kind is EventKind.READY:
            self._change_priority(event)
            self._rests.pop(event.task, None)
            self.ready(event)
        elif event.kind is EventKind.SWITCHED_IN:
            self._rests.pop(event.task, None)
            self.switched_in(event)
        elif event.kind is EventKind.SWITCHED_OUT:
            self.switched_out(event)
        self.settle(event)

    def finish(self) -> dict[int, tuple[Segment, ...]]:
        self.now_us = self.trace.end_us
        for task in tuple(self._open):
            self._close(task)
        return {task: tuple(found) for task, found in sorted(self._closed.items())}

    def _change_priority(self, event: TraceEvent) -> None:
        self._priorities[event.task] = event.argument
        last = self._open.get(event.task)
        if last:
            self.set(event.task, last.state, last.core, last.object)

    def priority(self, task: int) -> int:
        return self._priorities.get(task, 0)

    def set(self, task: int, state: State, core: int | None = None, waited_for: int | None = None) -> None:
        """Begin a segment, unless the open one says the same."""
        last = self._open.get(task)
        where = core if core is not None else last.core if last else self.trace.task(task).core
        fresh = Segment(task, self.now_us, self.now_us, state, where, waited_for, self.priority(task))
        if last and replace(last, start_us=self.now_us, end_us=self.now_us) == fresh:
            return
        self._close(task)
        self._open[task] = fresh

    def rest(self, task: int) -> None:
        """Let a task be out: what it said that it would do, or else the default."""
        state, number = self._rests.pop(task, self.default)
        self.set(task, state, None, number)

    def _close(self, task: int) -> None:
        last = self._open.pop(task, None)
        if last and last.start_us < self.now_us:
            self._closed.setdefault(task, []).append(replace(last, end_us=self.now_us))

    @abstractmethod
    def rests(self, event: TraceEvent) -> None:
        """A task will wait, sleep or be suspended once it is out; one that is not in does so at once."""

    @abstractmethod
    def ready(self, event: TraceEvent) -> None: ...

    @abstractmethod
    def switched_in(self, event: TraceEvent) -> None: ...

    @abstractmethod
    def switched_out(self, event: TraceEvent) -> None: ...

    @abstractmethod
    def settle(self, _event: TraceEvent) -> None:
        """Look again at who runs, after any event."""


def reconstruct(trace: Trace) -> Timeline:
    """Return what every task did. At most one task runs on a core at any time."""
    builder = _Exact(trace) if trace.exact else _Inferred(trace)
    builder.begin()
    for event in trace.events:
        builder.take(event)
    segments = builder.finish()
    return Timeline(segments, tuple(_holdings(trace)), trace.start_us, trace.end_us)


class _Exact(Builder):
    """The kernel told each switch."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._runs: dict[int, int] = {}  # core → task

    def begin(self) -> None:
        known: set[int] = set()
        for event in self.trace.events:
            if event.core not in known and event.kind in ACTS:
                self._runs[event.core] = event.task
                self.set(event.task, State.RUNNING, event.core)
            if event.kind in ACTS or event.kind is EventKind.SWITCHED_IN:
                known.add(event.core)

    def _is_in(self, task: int) -> bool:
        return task in self._runs.values()

    def rests(self, event: TraceEvent) -> None:
        if not self._is_in(event.task):
            self.rest(event.task)

    def ready(self, event: TraceEvent) -> None:
        if not self._is_in(event.task):
            self.set(event.task, State.READY)

    def switched_in(self, event: TraceEvent) -> None:
        other = self._runs.get(event.core)
        if other is not None and other != event.task:
            self.rest(other)
        self._runs = {core: task for core, task in self._runs.items() if task != event.task}
        self._runs[event.core] = event.task

    def switched_out(self, event: TraceEvent) -> None:
        if self._runs.get(event.core) == event.task:
            del self._runs[event.core]
        if not self._is_in(event.task):
            self.rest(event.task)

    def settle(self, _event: TraceEvent) -> None:
        for core, task in self._runs.items():
            self.set(task, State.RUNNING, core)


class _Inferred(Builder):
    """Preemption is not seen: of the tasks that are in on a core the one of the highest priority runs."""

    default = (State.WAITING, None)

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._in: dict[int, int] = {}  # task → core, in the order in which they came in

    def begin(self) -> None:
        seen: set[int] = set()
        for event in self.trace.events:
            if event.task not in seen and event.kind in ACTS:
                self._in[event.task] = event.core
            seen.add(event.task)
        self._choose()

    def rests(self, event: TraceEvent) -> None:
        if event.task not in self._in:
            self.rest(event.task)

    def ready(self, event: TraceEvent) -> None:
        if event.task not in self._in:
            self.set(event.task, State.READY)

    def switched_in(self, event: TraceEvent) -> None:
        self._in[event.task] = event.core

    def switched_out(self, event: TraceEvent) -> None:
        self._in.pop(event.task, None)
        self.rest(event.task)

    def settle(self, _event: TraceEvent) -> None:
        if _event.task in self._in and _event.kind in ACTS:
            self._in[_event.task] = _event.core  # it may have moved
        self._choose()

    def _choose(self) -> None:
        chosen: dict[int, int] = {}
        for task, core in self._in.items():
            if core not in chosen or self.priority(task) > self.priority(chosen[core]):
                chosen[core] = task
        for task, core in self._in.items():
            self.set(task, State.RUNNING if chosen[core] == task else State.READY, core)


def _holdings(trace: Trace) -> Iterator[Holding]:
    """Yield who held mutexes and binary semaphores: from taking until anybody gives."""
    held: dict[int, tuple[int, int]] = {}
    for event in trace.events:
        if not trace.object(event.argument).has_owner:
            continue
        if event.kind is EventKind.TAKEN:
            held[event.argument] = (event.task, event.time_us)
        elif event.kind is EventKind.GIVEN and event.argument in held:
            task, since_us = held.pop(event.argument)
            yield Holding(event.argument, task, since_us, event.time_us)
    for number, (task, since_us) in held.items():
        yield Holding(number, task, since_us, trace.end_us)
