"""Lanes of a trace's picture: one a core with who ran there, one a task with its states, and the marks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hil.reports.allure.axes import Axis
from hil.reports.allure.figure import GRID, INK, LIMIT, LINES, SOFT, Figure, text_width
from hil.reports.allure.trace.view import View, is_idle
from hil.trace import Mark, Segment, State, Task
from hil.trace.finding import duration, marks_of

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


def colour(view: View, task: int) -> str:
    """Return what a task's running bars look like, in its own lane and in the core's."""
    index = view.colour_index(task)
    return LINES[index % len(LINES)] if index >= 0 else _OTHER


def draw_core(figure: Figure, across: Axis, view: View, core: int, top: float) -> None:
    """Draw who ran on a core; where it is empty, nobody did."""
    how = "" if view.trace.exact else " (inferred)"
    _name(figure, across, f"core {core}{how}", top)
    for one in view.timeline.running(core, round(view.start_us), round(view.end_us)):
        task = view.trace.task(one.task)
        if not is_idle(task):
            fill = colour(view, one.task)
            _bar(figure, across, one, top, fill=fill, text=task.name, data_core=core, data_task=task.name)


def draw_task(figure: Figure, across: Axis, view: View, task: Task, top: float) -> None:
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


def _within(view: View, task: Task) -> list[Segment]:
    return view.timeline.of(task.number, round(view.start_us), round(view.end_us))


def _state_text(view: View, one: Segment) -> str:
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


def placed_marks(view: View, across: Axis) -> list[PlacedMark]:
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
