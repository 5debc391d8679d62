"""Picture of a trace: who ran on each core and what each task did, round the sample that was late."""

from __future__ import annotations

from hil.reports.allure.axes import Axis, tick_text
from hil.reports.allure.distribution import WIDTH
from hil.reports.allure.figure import GRID, INK, LIMIT, SOFT, Figure, Heading, text_width
from hil.reports.allure.trace import lanes
from hil.reports.allure.trace.legend import draw_legend, legend_rows
from hil.reports.allure.trace.view import Band, View, view_of
from hil.trace import StoredTrace

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
    marks = lanes.placed_marks(view, _axis(view))
    top = heading.height + 14 + _MARK_ROW * (1 + max((mark.row for mark in marks), default=0))
    cores_end = top + lanes.LANE * len(view.cores)
    bottom = cores_end + _GAP + lanes.LANE * len(view.tasks)
    across = _axis(view)
    rows = legend_rows(view, _RIGHT - _LEFT)
    foot = bottom + _FOOT + (_BAND_ROW if view.band else 0)
    figure = Figure(heading, foot + _LEGEND_ROW * len(rows) + 10)
    if view.band:
        _draw_band(figure, across, view.band, top - 2, bottom + 2)
    _draw_axis(figure, view, top, bottom, foot - 8)
    for number, core in enumerate(view.cores):
        lanes.draw_core(figure, across, view, core, top + lanes.LANE * number)
    for number, task in enumerate(view.tasks):
        lanes.draw_task(figure, across, view, task, cores_end + _GAP + lanes.LANE * number)
    lanes.draw_marks(figure, marks, top, bottom)
    draw_legend(figure, rows, _LEFT, foot + 14, _LEGEND_ROW)
    return figure.to_bytes()


def _axis(view: View) -> Axis:
    return Axis(view.start_us, view.end_us, _LEFT, _RIGHT)


def _title(stored: StoredTrace) -> str:
    return f"{stored.finding.sentence[:1].upper()}{stored.finding.sentence[1:]}"


def _subtitle(stored: StoredTrace, view: View) -> str:
    bench = stored.case_id.partition("/")[0]
    how = "" if stored.trace.exact else ", who runs is inferred from priorities"
    more = f", {view.hidden} quieter tasks not drawn" if view.hidden else ""
    return f"{bench} on {stored.title}, boot {stored.boot_index}: scheduler trace{how}{more}"


def _draw_band(figure: Figure, across: Axis, band: Band, top: float, bottom: float) -> None:
    """Show the stretch that the finding is about behind everything else."""
    left, right = across.px(band.start_us), across.px(band.end_us)
    fill, stroke = (BAD_BAND, LIMIT) if band.bad else (BAND, SOFT)
    figure.rect((left, top), right - left, bottom - top, fill=fill, data_band=band.text)
    for x in (left, right):
        figure.line((x, top), (x, bottom), stroke=stroke, stroke_dasharray="2 3")
    wide = text_width(band.text, bold=True)
    middle = min(max((left + right) / 2, _LEFT + wide / 2), _RIGHT - wide / 2)
    figure.text(middle, bottom + 34, band.text, anchor="middle", fill=stroke, weight="600")


def _draw_axis(figure: Figure, view: View, top: float, bottom: float, title_y: float) -> None:
    """Count from the moment at which the task should have woken, in µs or ms."""
    scale, unit = (1000.0, "ms") if view.end_us - view.start_us >= _MS_FROM_US else (1.0, "µs")
    shown = Axis((view.start_us - view.zero_us) / scale, (view.end_us - view.zero_us) / scale, _LEFT, _RIGHT)
    for tick in shown.ticks(9):
        x = shown.px(tick)
        figure.line((x, top), (x, bottom), stroke=GRID, data_tick_x=repr(tick * scale))
        figure.text(x, bottom + 17, tick_text(tick), anchor="middle")
    figure.line((_LEFT, bottom), (_RIGHT, bottom), stroke=SOFT)
    figure.text((_LEFT + _RIGHT) / 2, title_y, f"{unit} {view.zero_text}", anchor="middle", fill=INK)
