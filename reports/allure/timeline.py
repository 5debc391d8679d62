"""Chart: the samples of a case one after the other, so that stalls, drift and bursts show."""

from __future__ import annotations

from collections.abc import Callable

from hil.reports.allure import labels
from hil.reports.allure.axes import Axis, from_zero, padded, pushed_apart, tick_text
from hil.reports.allure.distribution import WIDTH
from hil.reports.allure.figure import COLD, GRID, INK, LIMIT, SOFT, Figure, Heading, Point, text_width
from hil.reports.allure.samples import Mark, Row, Samples

_LEFT, _ROOM, _HEIGHT = 76, 14, 250
_FAILED_LANE = 18


def draw_timeline(samples: Samples) -> bytes:
    """Return the SVG file. The samples must hold a value."""
    near, far = labels.near_and_far(samples)
    right = WIDTH - 28 - max((text_width(mark.text, bold=True) + 8 for mark in near), default=0)
    rows = [row for _, boot in samples.boots for row in boot]
    lane = _FAILED_LANE if any(row.failed for row in rows) else 0
    heading = Heading(samples.title, labels.subtitle(samples).replace("left out", "in grey"), WIDTH)
    head = heading.height + _ROOM
    top, bottom = head + lane, head + lane + _HEIGHT
    values = [row.value for row in rows if not row.failed] + [mark.value for mark in near]
    ends = padded(values, log=True) if _log(samples, values) else from_zero(values)
    up = Axis(*ends, bottom, top, _log(samples, values))
    across = Axis(0.0, max(row.at_s for row in rows) * 1.01 or 1.0, _LEFT, right)
    foot = labels.FOOT + labels.footer_rows(samples, far) * labels.ROW
    figure = Figure(heading, bottom + foot)
    _draw_grid(figure, across, up, samples)
    _draw_limits(figure, up, near, right)
    _draw_rows(figure, samples, lambda row: (across.px(row.at_s), up.px(row.value)))
    if lane:
        _draw_failed(figure, across, rows, head + lane / 2 - 2)
    labels.draw_footer(figure, samples, far, right, bottom + labels.FOOT)
    return figure.to_bytes()


def _log(samples: Samples, values: list[float]) -> bool:
    return samples.log and min(values) > 0  # a warm-up row may be zero where no other is


def _draw_grid(figure: Figure, across: Axis, up: Axis, samples: Samples) -> None:
    left, right, bottom = across.start_px, across.end_px, up.start_px
    for tick in up.ticks(7):
        figure.line((left, up.px(tick)), (right, up.px(tick)), stroke=GRID, data_tick_y=repr(tick))
        figure.text(left - 8, up.px(tick) + 4, tick_text(tick), anchor="end")
    for tick in across.ticks(9):
        x = across.px(tick)
        figure.line((x, bottom), (x, bottom + 5), stroke=SOFT, data_tick_x=repr(tick))
        figure.text(x, bottom + 18, tick_text(tick), anchor="middle")
    figure.line((left, bottom), (right, bottom), stroke=SOFT)
    label = "time since the start of the case (s)" if samples.timed else "sample"
    figure.text((left + right) / 2, bottom + 36, label, anchor="middle", fill=INK)
    figure.text(22, (up.start_px + up.end_px) / 2, samples.axis_label, anchor="middle", fill=INK, turned=True)


def _draw_limits(figure: Figure, up: Axis, near: list[Mark], right: float) -> None:
    heights = pushed_apart([up.px(mark.value) + 4 for mark in near], 15, up.end_px, up.start_px)
    for mark, y in zip(near, heights, strict=True):
        at = up.px(mark.value)
        figure.line(
            (_LEFT, at),
            (right, at),
            stroke=LIMIT,
            width=1.5,
            data_mark=mark.name,
            data_value=repr(mark.value),
        )
        figure.text(right + 6, y, mark.text, fill=LIMIT, weight="600")


def _draw_rows(figure: Figure, samples: Samples, place: Callable[[Row], Point]) -> None:
    several = len(samples.boots) > 1
    for position, (index, boot) in enumerate(samples.boots):
        for warmup, colour in ((True, COLD), (False, labels.boot_colour(position))):
            points = [place(row) for row in boot if row.warmup == warmup and not row.failed]
            kind = "warm-up" if warmup else "measured"
            if points:
                figure.dots(points, fill=colour, size=3 if several else 4, data_rows=kind, data_boot=index)


def _draw_failed(figure: Figure, across: Axis, rows: list[Row], y: float) -> None:
    """Put what has no value into a lane of its own, above the plot."""
    for warmup, colour in ((True, COLD), (False, LIMIT)):
        points = [(across.px(row.at_s), y) for row in rows if row.failed and row.warmup == warmup]
        if points:
            figure.crosses(points, stroke=colour, data_rows="failed")
    figure.text(_LEFT - 8, y + 4, "failed", anchor="end", fill=LIMIT)
