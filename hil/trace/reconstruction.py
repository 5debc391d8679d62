"""Which task ran when on which core: as the kernel told, or inferred from priorities."""

from __future__ import annotations

from collections.abc import Iterator

from hil.trace.events import Event, EventKind, Trace
from hil.trace.states import ACTS, Builder
from hil.trace.timeline import Holding, State, Timeline


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

    def rests(self, event: Event) -> None:
        if not self._is_in(event.task):
            self.rest(event.task)

    def ready(self, event: Event) -> None:
        if not self._is_in(event.task):
            self.set(event.task, State.READY)

    def switched_in(self, event: Event) -> None:
        other = self._runs.get(event.core)
        if other is not None and other != event.task:
            self.rest(other)
        self._runs = {core: task for core, task in self._runs.items() if task != event.task}
        self._runs[event.core] = event.task

    def switched_out(self, event: Event) -> None:
        if self._runs.get(event.core) == event.task:
            del self._runs[event.core]
        if not self._is_in(event.task):
            self.rest(event.task)

    def settle(self, _event: Event) -> None:
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

    def rests(self, event: Event) -> None:
        if event.task not in self._in:
            self.rest(event.task)

    def ready(self, event: Event) -> None:
        if event.task not in self._in:
            self.set(event.task, State.READY)

    def switched_in(self, event: Event) -> None:
        self._in[event.task] = event.core

    def switched_out(self, event: Event) -> None:
        self._in.pop(event.task, None)
        self.rest(event.task)

    def settle(self, _event: Event) -> None:
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
