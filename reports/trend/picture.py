# SPDX-License-Identifier: Apache-2.0
"""The picture of an event, for a page without script: the surest series over the nights, and what decides.

Above, candidate and reference on an axis that fits them; a limit that lies off it is a word at the edge.
Below, the candidate beside the reference in per cent of the level before, where nights have both: a commit
is blamed for a step in this, not in the raw values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from statistics import fmean
from typing import Any

from hil.base.units import Unit, best_unit, conversion, find_unit, format_value
from hil.base.untrusted import visible

WIDTH, LEFT, RIGHT = 640, 64, 8  # pixels of the drawing; RIGHT of the margin
_MAIN, _RATIO = (22.0, 132.0), (158.0, 206.0)  # from the top of a panel to its bottom
_HEIGHT, _HEIGHT_ALONE = 222, 150
_AIR = 0.12  # of the range of the values, above and below them
_LEAST_RANGE = 0.02  # of the largest value: what does not vary is a line, not noise
_FEWEST = 2  # points with a reference before a ratio is drawn


@dataclass(frozen=True)
class _Axis:
    """From values to pixels: ``low`` at ``bottom``, ``high`` at ``top``."""

    low: float
    high: float
    top: float
    bottom: float

    def at(self, value: float) -> float:
        return self.bottom - (value - self.low) / (self.high - self.low) * (self.bottom - self.top)

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


def event_picture(event: Mapping[str, Any], trend: Mapping[str, Any]) -> str:
    """Return the SVG of an event of trend.json; "" where no series of it is drawn there."""
    series = surest(event, trend)
    if series is None:
        return ""
    points = series["points"]
    values = points["value"]
    drawn = [n for n, value in enumerate(values) if value is not None]
    if len(drawn) < _FEWEST:
        return ""
    step = _step(event, trend, series)
    nights = [str(trend["runs"]["started_utc"][run])[:10] for run in points["run"]]
    reference = points.get("reference") or [None] * len(values)
    pairs = _ratios(values, reference, step)
    parts = [
        _shade(step, len(values), _RATIO[1] if pairs else _MAIN[1]),
        *_main(series, values, reference),
        *(_ratio_panel(pairs, step, len(values), of_ratio=bool(event["of_ratio"])) if pairs else ()),
        *_dates(nights, step, _HEIGHT if pairs else _HEIGHT_ALONE),
    ]
    height = _HEIGHT if pairs else _HEIGHT_ALONE
    return (
        f'<svg class="picture" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{_said(event, series)}">'
        f"{''.join(parts)}</svg>"
    )


def surest(event: Mapping[str, Any], trend: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the series that shows an event best; None where it is not drawn."""
    chosen = (event.get("picture") or {}).get("series", next(iter(event.get("series", ())), None))
    if chosen is None or chosen >= len(trend.get("series", ())):
        return None
    found: Mapping[str, Any] = trend["series"][chosen]
    return found


def _said(event: Mapping[str, Any], series: Mapping[str, Any]) -> str:
    """Return what the picture shows, for who does not see it."""
    name = f"{series['quantity']} {series['stat']}".strip()
    return escape(
        visible(f"{name} on {series['rack']}/{series['board']} over the nights: {event['headline']}")
    )


def _step(event: Mapping[str, Any], trend: Mapping[str, Any], series: Mapping[str, Any]) -> int:
    """Return the position of the first point of the new level."""
    number = next((n for n, one in enumerate(trend["events"]) if one is event), -1)
    own = [one["position"] for one in series["changes"] if one["event"] == number]
    after = (n for n, run in enumerate(series["points"]["run"]) if run >= event["run"])
    return int(own[0]) if own else next(after, 0)


def _x(position: float, count: int) -> float:
    return LEFT + position / max(count - 1, 1) * (WIDTH - LEFT - RIGHT)


def _shade(step: int, count: int, bottom: float) -> str:
    """Return the range in which it happened: from the last point before to the first of the new level."""
    left, right = _x(max(step - 1, 0), count), _x(step, count)
    size = f'width="{max(right - left, 2.0):.1f}" height="{bottom - _MAIN[0]:.1f}"'
    return f'<rect class="step" x="{left:.1f}" y="{_MAIN[0]}" {size}/>'


def _main(
    series: Mapping[str, Any], values: Sequence[float | None], reference: Sequence[float | None]
) -> Iterable[str]:
    """Yield the panel of candidate and reference, with its axis, its limit and what the lines are."""
    unit = find_unit(series["unit"]) if series["unit"] else None
    axis = _fitted([*values, *reference], *_MAIN)
    yield from _ticks(axis, [_written(axis.high, unit), _written(axis.low, unit)])
    steps = series["points"].get("limit") or []
    limit = steps[-1][1] if steps else None
    if limit is not None:
        yield _limit(limit, axis, _written(limit, unit))
    yield _path("reference", [(_x(n, len(values)), axis.at(value)) for n, value in _known(reference)])
    yield _path("candidate", [(_x(n, len(values)), axis.at(value)) for n, value in _known(values)])
    name = f"{series['quantity']} {series['stat']}".strip()
    label = "" if series["label"] == "defaults" else f" {series['label']}"
    lines = " (dotted: the reference)" if _known(reference) else ""
    where = f"{name}{label} · {series['rack']}/{series['board']}{lines}"
    yield f'<text x="{LEFT}" y="12">{escape(visible(where, 90))}</text>'


def _limit(limit: float, axis: _Axis, text: str) -> str:
    if axis.holds(limit):
        y = axis.at(limit)
        line = f'<line class="limit" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        return f'{line}<text class="e" x="{WIDTH - RIGHT}" y="{y - 3:.1f}">limit {escape(text)}</text>'
    arrow = "↑" if limit > axis.high else "↓"
    return f'<text class="e" x="{WIDTH - RIGHT}" y="12">limit {escape(text)} {arrow}</text>'


def _ratio_panel(
    ratios: Sequence[tuple[int, float]], step: int, count: int, *, of_ratio: bool
) -> Iterable[str]:
    """Yield the candidate beside the reference, in per cent of the level before the step."""
    axis = _fitted([value for _, value in ratios], *_RATIO)
    yield from _ticks(axis, [_percent(axis.high), _percent(axis.low)])
    yield _path("ratio", [(_x(n, count), axis.at(value)) for n, value in ratios])
    for first, part in (
        (True, [r for r in ratios if r[0] < step]),
        (False, [r for r in ratios if r[0] >= step]),
    ):
        if part:
            level = axis.at(fmean(value for _, value in part))
            left, right = _x(part[0][0], count), _x(part[-1][0], count)
            name = "level" if first else "level new"
            yield f'<line class="{name}" x1="{left:.1f}" x2="{right:.1f}" y1="{level:.1f}" y2="{level:.1f}"/>'
    words = "beside the reference, which decides" if of_ratio else "beside the reference"
    yield f'<text x="{LEFT}" y="{_RATIO[0] - 6:.0f}">{words}</text>'


def _ratios(
    values: Sequence[float | None], reference: Sequence[float | None], step: int
) -> list[tuple[int, float]]:
    """Return position and ratio of the points that have both, relative to their mean before ``step``."""
    found = [
        (n, value / other)
        for n, (value, other) in enumerate(zip(values, reference, strict=True))
        if value and other
    ]
    before = [ratio for n, ratio in found if n < step]
    if len(found) < _FEWEST or not before:
        return []
    base = fmean(before)
    return [(n, ratio / base - 1.0) for n, ratio in found]


def _fitted(values: Iterable[float | None], top: float, bottom: float) -> _Axis:
    """Return an axis that holds these values and little else."""
    known = [value for value in values if value is not None]
    low, high = min(known), max(known)
    air = max((high - low) * _AIR, abs(high) * _LEAST_RANGE / 2, 1e-9)
    return _Axis(low - air, high + air, top, bottom)


def _ticks(axis: _Axis, texts: Sequence[str]) -> Iterable[str]:
    for y, text in zip((axis.top, axis.bottom), texts, strict=True):
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
        yield f'<text class="e" x="{LEFT - 6}" y="{y + 4:.0f}">{escape(text)}</text>'


def _dates(nights: Sequence[str], step: int, height: int) -> Iterable[str]:
    """Yield the first and the last night, and that of the step where it has room."""
    count, y = len(nights), height - 4
    yield f'<text class="u" x="{LEFT}" y="{y}">{escape(nights[0])}</text>'
    yield f'<text class="e" x="{WIDTH - RIGHT}" y="{y}">{escape(nights[-1])}</text>'
    x = _x(step, count)
    if LEFT + 120 < x < WIDTH - RIGHT - 120:
        yield f'<text class="m" x="{x:.1f}" y="{y}">{escape(nights[step])}</text>'


def _path(name: str, points: Sequence[tuple[float, float]]) -> str:
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="{name}" points="{drawn}"/>' if drawn else ""


def _known(values: Sequence[float | None]) -> list[tuple[int, float]]:
    return [(n, value) for n, value in enumerate(values) if value is not None]


def _written(value: float, unit: Unit | None) -> str:
    """Return a value with three digits in the unit that reads best: "12.3 ms"."""
    if unit is None:
        return f"{value:.3g}"
    shown = best_unit(value, unit)
    numerator, denominator = conversion(unit, shown)
    amount = float(f"{value * numerator / denominator:.3g}")
    return format_value(amount, shown)


def _percent(ratio: float) -> str:
    return f"{100 * ratio:+.0f} %".replace("-", "−")
