"""Follows a trace's events and keeps, of each task, the stretch that it is in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace

from hil.trace.events import Event, EventKind, Trace
from hil.trace.timeline import Segment, State

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

    def take(self, event: Event) -> None:
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

    def _change_priority(self, event: Event) -> None:
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
    def rests(self, event: Event) -> None:
        """A task will wait, sleep or be suspended once it is out; one that is not in does so at once."""

    @abstractmethod
    def ready(self, event: Event) -> None: ...

    @abstractmethod
    def switched_in(self, event: Event) -> None: ...

    @abstractmethod
    def switched_out(self, event: Event) -> None: ...

    @abstractmethod
    def settle(self, _event: Event) -> None:
        """Look again at who runs, after any event."""
