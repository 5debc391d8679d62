# SPDX-License-Identifier: Apache-2.0
"""Picture of a trace: who ran on each core and what each task did, round the sample that was late.

Lanes of a trace's picture: one a core with who ran there, one a task with its states, and the marks.

Legend of a trace's picture.

What of a trace is drawn: which stretch, which cores and tasks, what is highlighted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hil.model import bench_of
from hil.reports.allure.charts import WIDTH
from hil.reports.svg import (
    GRID,
    INK,
    LIMIT,
    LINES,
    SOFT,
    Axis,
    Figure,
    Heading,
    text_width,
    tick_text,
)
from hil.trace.events import Mark, Task, Trace
from hil.trace.files import StoredTrace
from hil.trace.finding import HELD, INVERSION, TraceFinding, duration, marks_of
from hil.trace.timeline import Holding, Segment, State, Timeline

MOST_TASKS = 9
_AROUND = 0.12  # of the stretch that matters, on both sides
_SHORTEST_US = 200


@dataclass(frozen=True)
class PictureBand:
    """A highlighted stretch and what it is; ``bad`` where it is a fault."""

    start_us: int
    end_us: int
    text: str
    bad: bool


@dataclass(frozen=True)
class PictureView:
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
    band: PictureBand | None

    def colour_index(self, task: int) -> int:
        """Return a task's place among the lanes, which gives its colour; -1 where it has none."""
        return next((n for n, one in enumerate(self.tasks) if one.number == task), -1)

    def shows(self, held: Holding) -> bool:
        """Return whether a task with a lane holds something within the stretch."""
        within = held.start_us < self.end_us and held.end_us > self.start_us
        return within and self.colour_index(held.task) >= 0


def view_of(stored: StoredTrace) -> PictureView:
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
    return PictureView(
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


def _stretch(finding: TraceFinding, timeline: Timeline) -> tuple[int, int]:
    ends = [end for end in (finding.planned_us, finding.late_us) if end is not None]
    if finding.wait:
        ends += [finding.wait.start_us, finding.wait.end_us]
    return (min(ends), max(ends)) if ends else (timeline.start_us, timeline.end_us)


def _tasks(trace: Trace, timeline: Timeline, finding: TraceFinding, left: float, right: float) -> list[Task]:
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


def _band(finding: TraceFinding) -> PictureBand | None:
    if finding.wait is None:
        return None
    wait = finding.wait
    words = {
        INVERSION: f"priority inversion, {duration(wait.total_kept_us)}",
        HELD: f"waits for the owner, {duration(wait.waited_us)}",
    }
    text = words.get(finding.kind, finding.kind)
    return PictureBand(wait.start_us, wait.end_us, text, bad=finding.kind == INVERSION)


LANE, BAR = 30, 18
HOLDS = INK
STATE_FILLS = {
    State.READY: "#f6c15c",
    State.WAITING: "#e9b9d4",
    State.SLEEPING: "#edf0f3",
    State.SUSPENDED: "#cfd4da",
}
_OTHER = "#9aa3ad"  # a task without a lane
_THINNEST = 1.0
_HELD_HEIGHT = 3


def colour(view: PictureView, task: int) -> str:
    """Return what a task's running bars look like, in its own lane and in the core's."""
    index = view.colour_index(task)
    return LINES[index % len(LINES)] if index >= 0 else _OTHER


def draw_core(figure: Figure, across: Axis, view: PictureView, core: int, top: float) -> None:
    """Draw who ran on a core; where it is empty, nobody did."""
    how = "" if view.trace.exact else " (inferred)"
    _name(figure, across, f"core {core}{how}", top)
    for one in view.timeline.running(core, round(view.start_us), round(view.end_us)):
        task = view.trace.task(one.task)
        if not is_idle(task):
            fill = colour(view, one.task)
            _bar(figure, across, one, top, fill=fill, text=task.name, data_core=core, data_task=task.name)


def draw_task(figure: Figure, across: Axis, view: PictureView, task: Task, top: float) -> None:
    """Draw a task's states, and below them what it holds."""
    _name(figure, across, task.label, top, colour(view, task.number))
    for one in _within(view, task):
        fill = STATE_FILLS.get(one.state, colour(view, task.number))
        text = _state_text(view, one)
        _bar(figure, across, one, top, fill=fill, text=text, data_task=task.name, data_state=one.state.value)
    for held in view.timeline.holdings:
        if held.task == task.number and view.shows(held):
            left, right = _ends(across, held.start_us, held.end_us)
            name = view.trace.object(held.object).label
            corner = (left, top + (LANE + BAR) / 2 + 1)
            figure.rect(corner, right - left, _HELD_HEIGHT, fill=HOLDS, data_holds=name)


def _within(view: PictureView, task: Task) -> list[Segment]:
    return view.timeline.of(task.number, round(view.start_us), round(view.end_us))


def _state_text(view: PictureView, one: Segment) -> str:
    if one.state is State.WAITING:
        return f"waits for {view.trace.object(one.object).label}" if one.object else "waits"
    own = view.trace.task(one.task).priority
    if one.state is State.RUNNING:
        return "runs" if one.priority <= own else f"runs at {one.priority}"
    return "ready, cannot run" if one.state is State.READY else one.state.value


def _name(figure: Figure, across: Axis, text: str, top: float, swatch: str = "") -> None:
    x = across.start_px - 8
    figure.line((across.start_px, top + LANE), (across.end_px, top + LANE), stroke=GRID)
    if swatch:
        figure.rect((x - 9, top + LANE / 2 - 5), 9, 9, fill=swatch)
        x -= 15
    figure.text(x, top + LANE / 2 + 4, text, anchor="end", fill=INK)


def _bar(
    figure: Figure, across: Axis, one: Segment, top: float, *, fill: str, text: str, **data: object
) -> None:
    left, right = _ends(across, one.start_us, one.end_us)
    stretch = {"data_start": one.start_us, "data_end": one.end_us}
    figure.rect((left, top + (LANE - BAR) / 2), right - left, BAR, fill=fill, **stretch, **data)
    if text_width(text) + 8 <= right - left:
        ink = "#ffffff" if fill in LINES[:4] or fill == LINES[6] else INK
        figure.text((left + right) / 2, top + LANE / 2 + 4, text, anchor="middle", fill=ink)


def _ends(across: Axis, start_us: float, end_us: float) -> tuple[float, float]:
    left = max(across.px(start_us), across.start_px)
    return left, max(min(across.px(end_us), across.end_px), left + _THINNEST)


@dataclass(frozen=True)
class PlacedMark:
    """A mark's line at ``x`` and its text in the ``row``-th row above the lanes, from ``text_x``."""

    x: float
    text_x: float
    row: int
    text: str
    late: bool


def placed_marks(view: PictureView, across: Axis) -> list[PlacedMark]:
    """Return the marks within the view; texts that would overlap stand in rows."""
    found = [(view.zero_us, "planned", False)] if view.start_us <= view.zero_us <= view.end_us else []
    for event in marks_of(view.trace):
        assert event.mark is not None
        if view.start_us <= event.time_us <= view.end_us and event.mark is not Mark.PLANNED:
            late = event.mark in (Mark.OUTLIER, Mark.MISSED)
            text = f"{event.mark.name.lower()} {'+' if event.argument else ''}{duration(event.argument)}"
            found.append((event.time_us, text, late))
    ends: list[float] = []
    return [_place(across, ends, *each) for each in sorted(found)]


def _place(across: Axis, ends: list[float], time_us: int, text: str, late: bool) -> PlacedMark:
    x = across.px(time_us)
    wide = text_width(text, bold=late)
    text_x = min(x - 3, across.end_px - wide)
    row = next((n for n, end in enumerate(ends) if end + 8 <= text_x), len(ends))
    ends[row:] = [text_x + wide, *ends[row + 1 :]]
    return PlacedMark(x, text_x, row, text, late)


def draw_marks(figure: Figure, marks: Iterable[PlacedMark], top: float, bottom: float) -> None:
    for mark in marks:
        stroke, y = LIMIT if mark.late else SOFT, top - 8 - 16 * mark.row
        dash = "" if mark.late else "4 3"
        figure.line((mark.x, y + 3), (mark.x, bottom), stroke=stroke, width=1.5, stroke_dasharray=dash)
        figure.text(
            mark.text_x, y, mark.text, fill=LIMIT if mark.late else INK, weight="600" if mark.late else ""
        )


_SWATCH, _SPACE = 14, 20


@dataclass(frozen=True)
class Entry:
    text: str
    fill: str
    thin: bool = False

    @property
    def width(self) -> float:
        return _SWATCH + 6 + text_width(self.text) + _SPACE


def legend_rows(view: PictureView, width: float) -> list[list[Entry]]:
    """Return the entries for what the view holds, in rows that are ``width`` wide at most."""
    numbers = [task.number for task in view.tasks]
    start_us, end_us = round(view.start_us), round(view.end_us)
    states = {one.state for number in numbers for one in view.timeline.of(number, start_us, end_us)}
    words = {
        State.READY: "ready, but another task runs",
        State.WAITING: "waits for an object",
        State.SLEEPING: "sleeps",
        State.SUSPENDED: "suspended",
    }
    entries = [Entry("runs: the task's own colour", "#0072B2")]
    entries += [Entry(text, STATE_FILLS[state]) for state, text in words.items() if state in states]
    if any(view.shows(held) for held in view.timeline.holdings):
        entries.append(Entry("holds a mutex or binary semaphore", HOLDS, thin=True))
    rows: list[list[Entry]] = [[]]
    for entry in entries:
        if rows[-1] and sum(one.width for one in rows[-1]) + entry.width > width + _SPACE:
            rows.append([])
        rows[-1].append(entry)
    return rows


def draw_legend(figure: Figure, rows: list[list[Entry]], left: float, y: float, height: float) -> None:
    for number, row in enumerate(rows):
        x = left
        for entry in row:
            tall = 3 if entry.thin else 10
            at = y + number * height
            figure.rect((x, at - 4 - tall / 2), _SWATCH, tall, fill=entry.fill)
            figure.text(x + _SWATCH + 6, at, entry.text, fill=INK)
            x += entry.width


_LEFT, _RIGHT = 150, WIDTH - 24
_MARK_ROW, _FOOT, _LEGEND_ROW = 16, 44, 20
_BAND_ROW = 16
_GAP = 10  # between the cores' lanes and the tasks'
_MS_FROM_US = 5000
BAD_BAND, BAND = "#fbe3e3", "#edf1f6"


def draw_trace(stored: StoredTrace) -> bytes:
    """Return the SVG file, of the stretch round the outlier, or of the whole trace where none was marked."""
    view = view_of(stored)
    heading = Heading(_title(stored), _subtitle(stored, view), WIDTH)
    marks = placed_marks(view, _axis(view))
    top = heading.height + 14 + _MARK_ROW * (1 + max((mark.row for mark in marks), default=0))
    cores_end = top + LANE * len(view.cores)
    bottom = cores_end + _GAP + LANE * len(view.tasks)
    across = _axis(view)
    rows = legend_rows(view, _RIGHT - _LEFT)
    foot = bottom + _FOOT + (_BAND_ROW if view.band else 0)
    figure = Figure(heading, foot + _LEGEND_ROW * len(rows) + 10)
    if view.band:
        _draw_band(figure, across, view.band, top - 2, bottom + 2)
    _draw_axis(figure, view, top, bottom, foot - 8)
    for number, core in enumerate(view.cores):
        draw_core(figure, across, view, core, top + LANE * number)
    for number, task in enumerate(view.tasks):
        draw_task(figure, across, view, task, cores_end + _GAP + LANE * number)
    draw_marks(figure, marks, top, bottom)
    draw_legend(figure, rows, _LEFT, foot + 14, _LEGEND_ROW)
    return figure.to_bytes()


def _axis(view: PictureView) -> Axis:
    return Axis(view.start_us, view.end_us, _LEFT, _RIGHT)


def _title(stored: StoredTrace) -> str:
    return f"{stored.finding.sentence[:1].upper()}{stored.finding.sentence[1:]}"


def _subtitle(stored: StoredTrace, view: PictureView) -> str:
    bench = bench_of(stored.case_id)
    how = "" if stored.trace.exact else ", who runs is inferred from priorities"
    more = f", {view.hidden} quieter tasks not drawn" if view.hidden else ""
    return f"{bench} on {stored.title}, boot {stored.boot_index}: scheduler trace{how}{more}"


def _draw_band(figure: Figure, across: Axis, band: PictureBand, top: float, bottom: float) -> None:
    """Show the stretch that the finding is about behind everything else."""
    left, right = across.px(band.start_us), across.px(band.end_us)
    fill, stroke = (BAD_BAND, LIMIT) if band.bad else (BAND, SOFT)
    figure.rect((left, top), right - left, bottom - top, fill=fill, data_band=band.text)
    for x in (left, right):
        figure.line((x, top), (x, bottom), stroke=stroke, stroke_dasharray="2 3")
    wide = text_width(band.text, bold=True)
    middle = min(max((left + right) / 2, _LEFT + wide / 2), _RIGHT - wide / 2)
    figure.text(middle, bottom + 34, band.text, anchor="middle", fill=stroke, weight="600")


def _draw_axis(figure: Figure, view: PictureView, top: float, bottom: float, title_y: float) -> None:
    """Count from the moment at which the task should have woken, in µs or ms."""
    scale, unit = (1000.0, "ms") if view.end_us - view.start_us >= _MS_FROM_US else (1.0, "µs")
    shown = Axis((view.start_us - view.zero_us) / scale, (view.end_us - view.zero_us) / scale, _LEFT, _RIGHT)
    for tick in shown.ticks(9):
        x = shown.px(tick)
        figure.line((x, top), (x, bottom), stroke=GRID, data_tick_x=repr(tick * scale))
        figure.text(x, bottom + 17, tick_text(tick), anchor="middle")
    figure.line((_LEFT, bottom), (_RIGHT, bottom), stroke=SOFT)
    figure.text((_LEFT + _RIGHT) / 2, title_y, f"{unit} {view.zero_text}", anchor="middle", fill=INK)
