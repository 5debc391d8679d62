# SPDX-License-Identifier: Apache-2.0
"""Chart: how the samples of a case are distributed, as a histogram and as shares at or below a value.

Chart: the samples of a case one after the other, so that stalls, drift and bursts show.

Parts that both share: what stands under the title, the legend of boots, limits off the chart.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence

from hil.metrics import stats
from hil.reports.allure.samples import MARK_SHARES, CaseSamples, NumberMark, SampleRow
from hil.reports.svg import (
    BAR,
    COLD,
    FOOT,
    GRID,
    INK,
    LIMIT,
    LINES,
    ROW,
    SOFT,
    STATISTIC,
    Axis,
    Figure,
    Heading,
    Point,
    from_zero,
    padded,
    pushed_apart,
    text_width,
    tick_text,
)

WIDTH = 840
_LEFT, _RIGHT = 76, WIDTH - 28
_ROW = 17
_LABEL_GAP = 8
_BARS, _GAP, _SHARES = 120, 18, 190
_BINS_FEWEST, _BINS_MOST = 6, 80


def draw_distribution(samples: CaseSamples) -> bytes:
    """Return the SVG file. The samples must hold a value."""
    near, far = near_and_far(samples)
    values = sorted(samples.values)
    statistics = samples.statistics
    reach = [*values, *(mark.value for mark in (*near, *statistics))]
    log = samples.log and min(reach) > 0  # a row of another metric of the same columns may be zero
    across = _axis(padded(reach, log=log), [*statistics, *near], log=log)
    marks = [(mark, STATISTIC) for mark in statistics] + [(mark, LIMIT) for mark in near]
    rows = rows_of_labels([_span(across, mark) for mark, _ in marks])
    heading = Heading(samples.title, subtitle(samples), WIDTH)
    head = heading.height + _ROW
    top = head + _ROW * (max(rows, default=-1) + 1)
    bars_end, shares_start = top + _BARS, top + _BARS + _GAP
    bottom = shares_start + _SHARES
    foot = FOOT + footer_rows(samples, far) * ROW
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
    draw_footer(figure, samples, far, across.end_px, bottom + FOOT)
    return figure.to_bytes()


def _axis(ends: tuple[float, float], marks: Sequence[NumberMark], *, log: bool) -> Axis:
    """Return the value axis, which ends so far left that the marks' labels have room."""
    across = Axis(*ends, _LEFT, _RIGHT, log)
    overflow = max((_span(across, mark)[1] - (WIDTH - 10) for mark in marks), default=0.0)
    return Axis(*ends, _LEFT, _RIGHT - max(overflow, 0.0), log)


def _span(across: Axis, mark: NumberMark) -> tuple[float, float]:
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


def _draw_mark(
    figure: Figure, across: Axis, mark: NumberMark, colour: str, *, y: float, bottom: float
) -> None:
    x = across.px(mark.value)
    dashes = "" if colour == LIMIT else "4 3"
    figure.line(
        (x, y - 10), (x, bottom), stroke=colour, width=1.5, stroke_dasharray=dashes,
        data_mark=mark.name, data_value=repr(mark.value),
    )  # fmt: skip
    figure.text(x + 4, y, mark.text, fill=colour, weight="600")


def _draw_shares(figure: Figure, across: Axis, up: Axis, samples: CaseSamples) -> None:
    """Draw one line a boot. What failed is slower than all, so the line ends below 100 %."""
    for position, (index, boot) in enumerate(samples.boots):
        counted = [row for row in boot if not row.warmup]
        done = sorted(row.value for row in counted if not row.failed)
        if not done:
            continue
        steps = [(across.px(value), up.px(rank / len(counted))) for rank, value in enumerate(done, start=1)]
        ends = [(across.start_px, up.px(0.0)), *_thinned(steps), (across.end_px, steps[-1][1])]
        colour = boot_colour(position)
        figure.stairs(ends, stroke=colour, data_boot=index, data_share=repr(len(done) / len(counted)))


def _thinned(steps: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Leave out steps that are lower than what a screen shows; the first and the last one stay."""
    kept = [steps[0]]
    for step in steps[1:-1]:
        if abs(step[0] - kept[-1][0]) >= 0.5 or abs(step[1] - kept[-1][1]) >= 0.5:
            kept.append(step)
    return [*kept, *steps[-1:]]


_LEFT, _ROOM, _HEIGHT = 76, 14, 250
_FAILED_LANE = 18


def draw_timeline(samples: CaseSamples) -> bytes:
    """Return the SVG file. The samples must hold a value."""
    near, far = near_and_far(samples)
    right = WIDTH - 28 - max((text_width(mark.text, bold=True) + 8 for mark in near), default=0)
    rows = [row for _, boot in samples.boots for row in boot]
    lane = _FAILED_LANE if any(row.failed for row in rows) else 0
    heading = Heading(samples.title, subtitle(samples).replace("left out", "in grey"), WIDTH)
    head = heading.height + _ROOM
    top, bottom = head + lane, head + lane + _HEIGHT
    values = [row.value for row in rows if not row.failed] + [mark.value for mark in near]
    ends = padded(values, log=True) if _log(samples, values) else from_zero(values)
    up = Axis(*ends, bottom, top, _log(samples, values))
    across = Axis(0.0, max(row.at_s for row in rows) * 1.01 or 1.0, _LEFT, right)
    foot = FOOT + footer_rows(samples, far) * ROW
    figure = Figure(heading, bottom + foot)
    _draw_time_grid(figure, across, up, samples)
    _draw_limits(figure, up, near, right)
    _draw_rows(figure, samples, lambda row: (across.px(row.at_s), up.px(row.value)))
    if lane:
        _draw_failed(figure, across, rows, head + lane / 2 - 2)
    draw_footer(figure, samples, far, right, bottom + FOOT)
    return figure.to_bytes()


def _log(samples: CaseSamples, values: list[float]) -> bool:
    return samples.log and min(values) > 0  # a warm-up row may be zero where no other is


def _draw_time_grid(figure: Figure, across: Axis, up: Axis, samples: CaseSamples) -> None:
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


def _draw_limits(figure: Figure, up: Axis, near: list[NumberMark], right: float) -> None:
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


def _draw_rows(figure: Figure, samples: CaseSamples, place: Callable[[SampleRow], Point]) -> None:
    several = len(samples.boots) > 1
    for position, (index, boot) in enumerate(samples.boots):
        for warmup, colour in ((True, COLD), (False, boot_colour(position))):
            points = [place(row) for row in boot if row.warmup == warmup and not row.failed]
            kind = "warm-up" if warmup else "measured"
            if points:
                figure.dots(points, fill=colour, size=3 if several else 4, data_rows=kind, data_boot=index)


def _draw_failed(figure: Figure, across: Axis, rows: list[SampleRow], y: float) -> None:
    """Put what has no value into a lane of its own, above the plot."""
    for warmup, colour in ((True, COLD), (False, LIMIT)):
        points = [(across.px(row.at_s), y) for row in rows if row.failed and row.warmup == warmup]
        if points:
            figure.crosses(points, stroke=colour, data_rows="failed")
    figure.text(_LEFT - 8, y + 4, "failed", anchor="end", fill=LIMIT)


BOOTS_NAMED = 6


_FAR = 2.0  # times what the samples reach: beyond it an axis is more gap than samples


def subtitle(samples: CaseSamples) -> str:
    """Return "done_us − planned_us, 200 samples, 1 boot, 10 warm-up rows left out"."""
    boots = len(samples.boots)
    warmup = sum(row.warmup for _, boot in samples.boots for row in boot)
    formula = f"{samples.formula} by {samples.clock}" if samples.clock else samples.formula
    parts = [formula, f"{samples.counted} samples", f"{boots} boot{'' if boots == 1 else 's'}"]
    if warmup:
        parts.append(f"{warmup} warm-up row{'' if warmup == 1 else 's'} left out")
    if samples.failed:
        parts.append(f"{samples.failed} failed or timed out, counted as slower than all")
    if samples.void:
        parts.append(f"{samples.void} void and left out, for the host was late")
    if samples.beyond:
        parts.append(f"{' and '.join(samples.beyond)} among them")
    return ", ".join(parts)


def boot_colour(position: int) -> str:
    return LINES[position % len(LINES)]


def footer_rows(samples: CaseSamples, far: Sequence[NumberMark]) -> int:
    """Return how many rows draw_footer needs below the axis."""
    return int(len(samples.boots) > 1) + int(bool(far))


def draw_footer(figure: Figure, samples: CaseSamples, far: Sequence[NumberMark], x: float, y: float) -> None:
    """Write below the axis, up to ``x``, which boot has which colour and which limits have no place."""
    if len(samples.boots) > 1:
        _boot_legend(figure, samples, x, y)
        y += ROW
    if far:
        figure.text(x, y, f"off the chart: {'; '.join(mark.text for mark in far)}", anchor="end")


def _boot_legend(figure: Figure, samples: CaseSamples, x: float, y: float) -> None:
    """Name the first boots in a row that ends at ``x``; the others are counted."""
    names = [f"boot {index}" for index, _ in samples.boots[:BOOTS_NAMED]]
    rest = len(samples.boots) - len(names)
    if rest:
        figure.text(x, y, f"and {rest} more", anchor="end")
        x -= text_width(f"and {rest} more") + 10
    for position, name in reversed(list(enumerate(names))):
        figure.text(x, y, name, anchor="end")
        x -= text_width(name) + 4
        figure.line((x - 16, y - 4), (x, y - 4), stroke=boot_colour(position), width=2.5)
        x -= 28


def near_and_far(samples: CaseSamples) -> tuple[list[NumberMark], list[NumberMark]]:
    """Return the limits that the axis can hold without squeezing the samples, and the others."""
    least, most = min(map(abs, samples.values)) / _FAR, max(map(abs, samples.values)) * _FAR
    low = least if samples.log else 0.0
    near = [mark for mark in samples.limits if low <= abs(mark.value) <= most]
    return near, [mark for mark in samples.limits if mark not in near]


def rows_of_labels(spans: Sequence[tuple[float, float]]) -> list[int]:
    """Return for each (left, right) a row, from 0 at the top, in which it touches no other.

    A line goes down from each left end, so a label that reaches beyond another's left end stands above it.
    """
    found: dict[int, int] = {}
    for index in sorted(range(len(spans)), key=lambda at: spans[at][0]):
        over = [row for other, row in found.items() if spans[other][1] + _LABEL_GAP > spans[index][0]]
        found[index] = max(over, default=-1) + 1
    return [found[index] for index in range(len(spans))]
