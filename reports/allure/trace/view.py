"""What of a trace is drawn: which stretch, which cores and tasks, what is highlighted."""

from __future__ import annotations

from dataclasses import dataclass

from hil.trace import Finding, Holding, State, StoredTrace, Task, Timeline, Trace
from hil.trace.finding import HELD, INVERSION, duration

MOST_TASKS = 9
_AROUND = 0.12  # of the stretch that matters, on both sides
_SHORTEST_US = 200


@dataclass(frozen=True)
class Band:
    """A highlighted stretch and what it is; ``bad`` where it is a fault."""

    start_us: int
    end_us: int
    text: str
    bad: bool


@dataclass(frozen=True)
class View:
    """``zero_us`` is where the time axis begins to count; ``hidden`` tasks did something too, but no lane is
    left for them."""

    trace: Trace
    timeline: Timeline
    start_us: float
    end_us: float
    zero_us: int
    zero_text: str
    cores: tuple[int, ...]
    tasks: tuple[Task, ...]
    hidden: int
    band: Band | None

    def colour_index(self, task: int) -> int:
        """Return a task's place among the lanes, which gives its colour; -1 where it has none."""
        return next((n for n, one in enumerate(self.tasks) if one.number == task), -1)

    def shows(self, held: Holding) -> bool:
        """Say whether a task with a lane holds something within the stretch."""
        within = held.start_us < self.end_us and held.end_us > self.start_us
        return within and self.colour_index(held.task) >= 0


def view_of(stored: StoredTrace) -> View:
    finding, trace, timeline = stored.finding, stored.trace, stored.timeline
    start_us, end_us = _stretch(finding, timeline)
    around = max((end_us - start_us) * _AROUND, _SHORTEST_US / 2)
    left, right = max(start_us - around, timeline.start_us), min(end_us + around, timeline.end_us)
    right = max(right, left + 1)
    tasks = _tasks(trace, timeline, finding, left, right)
    planned = finding.planned_us is not None
    zero_us = finding.planned_us if finding.planned_us is not None else timeline.start_us
    zero_text = "after the planned wake" if planned else "since the trace began"
    cores = sorted({*timeline.cores()})
    return View(
        trace,
        timeline,
        left,
        right,
        zero_us,
        zero_text,
        tuple(cores),
        tuple(sorted(tasks[:MOST_TASKS], key=lambda task: (-task.priority, task.number))),
        max(0, len(tasks) - MOST_TASKS),
        _band(finding),
    )


def _stretch(finding: Finding, timeline: Timeline) -> tuple[int, int]:
    ends = [end for end in (finding.planned_us, finding.late_us) if end is not None]
    if finding.wait:
        ends += [finding.wait.start_us, finding.wait.end_us]
    return (min(ends), max(ends)) if ends else (timeline.start_us, timeline.end_us)


def _tasks(trace: Trace, timeline: Timeline, finding: Finding, left: float, right: float) -> list[Task]:
    """Return the tasks that did something within the stretch, those of the finding first, idle ones not."""
    first = {finding.task}
    if finding.wait:
        first |= {finding.wait.waiter, finding.wait.owner, *finding.wait.kept_us}
    active: dict[int, int] = {}
    for number in timeline.segments:
        busy = [
            one.length_us
            for one in timeline.of(number, round(left), round(right))
            if one.state in (State.RUNNING, State.READY)
        ]
        if (busy or number in first) and not is_idle(trace.task(number)):
            active[number] = sum(busy)
    ranked = sorted(active, key=lambda number: (number not in first, -active[number], number))
    return [trace.task(number) for number in ranked]


def is_idle(task: Task) -> bool:
    return task.priority == 0 and task.name.startswith("IDLE")


def _band(finding: Finding) -> Band | None:
    if finding.wait is None:
        return None
    wait = finding.wait
    words = {
        INVERSION: f"priority inversion, {duration(wait.total_kept_us)}",
        HELD: f"waits for the owner, {duration(wait.waited_us)}",
    }
    text = words.get(finding.kind, finding.kind)
    return Band(wait.start_us, wait.end_us, text, bad=finding.kind == INVERSION)
