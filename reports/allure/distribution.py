"""Chart: how the samples of a case are distributed, as a histogram and as shares at or below a value."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from hil.metrics import stats
from hil.reports.allure import labels
from hil.reports.allure.axes import Axis, padded, tick_text
from hil.reports.allure.figure import BAR, GRID, INK, LIMIT, SOFT, STATISTIC, Figure, Heading, text_width
from hil.reports.allure.samples import MARK_SHARES, Mark, Samples

WIDTH = 840
_LEFT, _RIGHT = 76, WIDTH - 28
_ROW = 17
_BARS, _GAP, _SHARES = 120, 18, 190
_BINS_FEWEST, _BINS_MOST = 6, 80


def draw_distribution(samples: Samples) -> bytes:
    """Return the SVG file. The samples must hold a value."""
    near, far = labels.near_and_far(samples)
    values = sorted(samples.values)
    statistics = samples.statistics
    reach = [*values, *(mark.value for mark in (*near, *statistics))]
    log = samples.log and min(reach) > 0  # a row of another metric of the same columns may be zero
    across = _axis(padded(reach, log=log), [*statistics, *near], log=log)
    marks = [(mark, STATISTIC) for mark in statistics] + [(mark, LIMIT) for mark in near]
    rows = labels.rows_of_labels([_span(across, mark) for mark, _ in marks])
    heading = Heading(samples.title, labels.subtitle(samples), WIDTH)
    head = heading.height + _ROW
    top = head + _ROW * (max(rows, default=-1) + 1)
    bars_end, shares_start = top + _BARS, top + _BARS + _GAP
    bottom = shares_start + _SHARES
    foot = labels.FOOT + labels.footer_rows(samples, far) * labels.ROW
    figure = Figure(heading, bottom + foot)
    up = Axis(0.0, 1.0, bottom, shares_start)
    _draw_grid(figure, across, top, bottom, samples.axis_label)
    _draw_bars(figure, across, values, bars_end)
    _draw_share_grid(figure, across, up)
    for (mark, colour), row in zip(marks, rows, strict=True):
        _draw_mark(figure, across, mark, colour, y=head + _ROW * row, bottom=bottom)
    _draw_shares(figure, across, up, samples)
    for mark in statistics:
        if mark.name in MARK_SHARES:
            figure.dots([(across.px(mark.value), up.px(MARK_SHARES[mark.name]))], fill=STATISTIC, size=7)
    labels.draw_footer(figure, samples, far, across.end_px, bottom + labels.FOOT)
    return figure.to_bytes()


def _axis(ends: tuple[float, float], marks: Sequence[Mark], *, log: bool) -> Axis:
    """Return the value axis, which ends so far left that the marks' labels have room."""
    across = Axis(*ends, _LEFT, _RIGHT, log)
    overflow = max((_span(across, mark)[1] - (WIDTH - 10) for mark in marks), default=0.0)
    return Axis(*ends, _LEFT, _RIGHT - max(overflow, 0.0), log)


def _span(across: Axis, mark: Mark) -> tuple[float, float]:
    """Return from where to where a mark's line and its label go."""
    x = across.px(mark.value)
    return x, x + text_width(mark.text, bold=True) + 6


def _draw_grid(figure: Figure, across: Axis, top: float, bottom: float, axis_label: str) -> None:
    for tick in across.ticks(10):
        x = across.px(tick)
        figure.line((x, top), (x, bottom), stroke=GRID, data_tick_x=repr(tick))
        figure.text(x, bottom + 18, tick_text(tick), anchor="middle")
    figure.text((across.start_px + across.end_px) / 2, bottom + 36, axis_label, anchor="middle", fill=INK)


def _draw_bars(figure: Figure, across: Axis, values: Sequence[float], bottom: float) -> None:
    edges = _edges(values, across.log)
    places = [bisect_right(values, edge) for edge in edges[1:-1]]
    counts = [end - start for start, end in zip([0, *places], [*places, len(values)], strict=True)]
    up = Axis(0.0, max(counts) * 1.05, bottom, bottom - _BARS)
    for tick in (tick for tick in up.ticks(3) if tick == int(tick)):
        figure.line((across.start_px, up.px(tick)), (across.end_px, up.px(tick)), stroke=GRID)
        figure.text(_LEFT - 8, up.px(tick) + 4, tick_text(tick), anchor="end")
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        x, y = across.px(low), up.px(count)
        if count:
            width = max(across.px(high) - x - 1, 1.0)
            figure.rect((x, y), width, bottom - y, fill=BAR, data_count=count, data_low=repr(low))
    figure.line((across.start_px, bottom), (across.end_px, bottom), stroke=SOFT)
    figure.text(22, bottom - _BARS / 2, "samples", anchor="middle", turned=True)


def _edges(values: Sequence[float], log: bool) -> list[float]:
    """Return the ends of bins of equal width on the axis, by the rule of Freedman and Diaconis (1981)."""
    low, high = values[0], values[-1]
    if low == high:
        return [low * 0.99, high * 1.01] if low else [-0.5, 0.5]
    scaled = [math.log(value) for value in values] if log else list(values)
    bins = min(_BINS_MOST, max(_BINS_FEWEST, math.ceil((scaled[-1] - scaled[0]) / _bin_width(scaled))))
    if log:
        return [low * (high / low) ** (step / bins) for step in range(bins + 1)]
    return [low + (high - low) * step / bins for step in range(bins + 1)]


def _bin_width(values: Sequence[float]) -> float:
    """Return the width for sorted values; that of the fewest bins where half of them are the same."""
    spread = stats.quantile(values, 0.75) - stats.quantile(values, 0.25)
    return 2 * spread / len(values) ** (1 / 3) or (values[-1] - values[0]) / _BINS_FEWEST


def _draw_share_grid(figure: Figure, across: Axis, up: Axis) -> None:
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = up.px(share)
        stroke = GRID if share else SOFT
        figure.line((across.start_px, y), (across.end_px, y), stroke=stroke, data_tick_y=repr(share))
        figure.text(_LEFT - 8, y + 4, f"{share * 100:.0f} %", anchor="end")
    figure.text(22, (up.start_px + up.end_px) / 2, "share at or below", anchor="middle", turned=True)


def _draw_mark(figure: Figure, across: Axis, mark: Mark, colour: str, *, y: float, bottom: float) -> None:
    x = across.px(mark.value)
    dashes = "" if colour == LIMIT else "4 3"
    figure.line(
        (x, y - 10), (x, bottom), stroke=colour, width=1.5, stroke_dasharray=dashes,
        data_mark=mark.name, data_value=repr(mark.value),
    )  # fmt: skip
    figure.text(x + 4, y, mark.text, fill=colour, weight="600")


def _draw_shares(figure: Figure, across: Axis, up: Axis, samples: Samples) -> None:
    """Draw one line a boot. What failed is slower than all, so the line ends below 100 %."""
    for position, (index, boot) in enumerate(samples.boots):
        counted = [row for row in boot if not row.warmup]
        done = sorted(row.value for row in counted if not row.failed)
        if not done:
            continue
        steps = [(across.px(value), up.px(rank / len(counted))) for rank, value in enumerate(done, start=1)]
        ends = [(across.start_px, up.px(0.0)), *_thinned(steps), (across.end_px, steps[-1][1])]
        colour = labels.boot_colour(position)
        figure.stairs(ends, stroke=colour, data_boot=index, data_share=repr(len(done) / len(counted)))


def _thinned(steps: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Leave out steps that are lower than what a screen shows; the first and the last one stay."""
    kept = [steps[0]]
    for step in steps[1:-1]:
        if abs(step[0] - kept[-1][0]) >= 0.5 or abs(step[1] - kept[-1][1]) >= 0.5:
            kept.append(step)
    return [*kept, *steps[-1:]]
