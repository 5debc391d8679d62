# SPDX-License-Identifier: Apache-2.0
"""Which task ran when on which core, and what the others did meanwhile, from a trace's events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum


class State(StrEnum):
    """What a task does. READY: it could run, but another one does."""

    RUNNING = "running"
    READY = "ready"
    WAITING = "waiting"
    SLEEPING = "sleeping"
    SUSPENDED = "suspended"


@dataclass(frozen=True)
class Segment:
    """A stretch of one task in one state.

    ``core`` is where it runs, or ran last; ``object`` what it waits for; ``priority`` the one in force, an
    inherited one included.
    """

    task: int
    start_us: int
    end_us: int
    state: State
    core: int | None
    object: int | None
    priority: int

    @property
    def length_us(self) -> int:
        return self.end_us - self.start_us


@dataclass(frozen=True)
class Holding:
    """A task has an object from ``start_us`` to ``end_us``."""

    object: int
    task: int
    start_us: int
    end_us: int


@dataclass(frozen=True)
class Timeline:
    """A task's segments are in order and do not overlap; before its first one its state is not known."""

    segments: Mapping[int, tuple[Segment, ...]]
    holdings: tuple[Holding, ...]
    start_us: int
    end_us: int

    def of(self, task: int, start_us: int, end_us: int) -> list[Segment]:
        """Return a task's segments within a stretch, cut to it."""
        return [
            replace(one, start_us=max(one.start_us, start_us), end_us=min(one.end_us, end_us))
            for one in self.segments.get(task, ())
            if one.start_us < end_us and one.end_us > start_us
        ]

    def running(self, core: int, start_us: int, end_us: int) -> list[Segment]:
        """Return who ran on a core within a stretch, in order, cut to it."""
        found = [
            one
            for task in self.segments
            for one in self.of(task, start_us, end_us)
            if one.state is State.RUNNING and one.core == core
        ]
        return sorted(found, key=lambda one: one.start_us)

    def cores(self) -> list[int]:
        found = {one.core for each in self.segments.values() for one in each if one.state is State.RUNNING}
        return sorted(core for core in found if core is not None)

    def holders(self, number: int, start_us: int, end_us: int) -> list[Holding]:
        """Return who held an object within a stretch, in order, not cut."""
        return [
            one
            for one in self.holdings
            if one.object == number and one.start_us < end_us and one.end_us > start_us
        ]
