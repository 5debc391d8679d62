# SPDX-License-Identifier: Apache-2.0
"""The picture of an event, for a page without script: the surest series over the nights, and what decides.

Above, candidate and reference on an axis that fits them; a limit that lies off it is a word at the edge.
Below, the candidate beside the reference in per cent of the level before, where nights have both: a commit
is blamed for a step in this, not in the raw values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from hil.base.units import Unit, best_unit, conversion, find_unit, format_value
from hil.base.untrusted import visible
from hil.reports.svg import Axis, Svg

WIDTH, LEFT, RIGHT = 640, 64, 632  # pixels of the drawing, and the ends of its lines
_MAIN, _RATIO = (22.0, 132.0), (158.0, 206.0)  # from the top of a panel to its bottom
_HEIGHT, _HEIGHT_ALONE = 222, 150
_AIR = 0.12  # of the range of the values, above and below them
_LEAST_RANGE = 0.02  # of the largest value: what does not vary is a line, not noise
_FEWEST = 2  # points with a reference before a ratio is drawn

Values = Sequence[float | None]


def event_picture(event: Mapping[str, Any], trend: Mapping[str, Any]) -> str:
    """Return the SVG of an event of trend.json; "" where no series of it is drawn there."""
    series = surest(event, trend)
    values: Values = series["points"]["value"] if series else []
    if series is None or sum(value is not None for value in values) < _FEWEST:
        return ""
    step = _step(event, trend, series)
    reference: Values = series["points"].get("reference") or [None] * len(values)
    ratios = _ratios(values, reference, step)
    height, across = _HEIGHT if any(ratios) else _HEIGHT_ALONE, nights_axis(len(values))
    svg = Svg(WIDTH, height, class_="picture", aria_label=_said(event, series))
    left, right = across.px(max(step - 1, 0)), across.px(step)
    bottom = _RATIO[1] if any(ratios) else _MAIN[1]
    svg.add("rect", class_="step", x=left, y=_MAIN[0], width=max(right - left, 2.0), height=bottom - _MAIN[0])
    _draw_main(svg, series, values, reference)
    if any(ratios):
        _draw_ratios(svg, ratios, step, of_ratio=bool(event["of_ratio"]))
    nights = [str(trend["runs"]["started_utc"][run])[:10] for run in series["points"]["run"]]
    draw_dates(svg, nights, height, step)
    return svg.to_text()


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
    return visible(f"{name} on {series['rack']}/{series['board']} over the nights: {event['headline']}")


def _step(event: Mapping[str, Any], trend: Mapping[str, Any], series: Mapping[str, Any]) -> int:
    """Return the position of the first point of the new level."""
    number = next((n for n, one in enumerate(trend["events"]) if one is event), -1)
    own = [one["position"] for one in series["changes"] if one["event"] == number]
    after = (n for n, run in enumerate(series["points"]["run"]) if run >= event["run"])
    return int(own[0]) if own else next(after, 0)


def nights_axis(count: int) -> Axis:
    """Return the axis on which ``count`` points stand side by side."""
    return Axis(0, max(count - 1, 1), LEFT, RIGHT)


def fitted(values: Iterable[float | None], top: float, bottom: float) -> Axis:
    """Return an axis that holds these values and little else."""
    known = [value for value in values if value is not None]
    low, high = min(known), max(known)
    air = max((high - low) * _AIR, abs(high) * _LEAST_RANGE / 2, 1e-9)
    return Axis(low - air, high + air, bottom, top)


def draw_ends(svg: Svg, up: Axis, written: Callable[[float], str]) -> None:
    """Draw a line with its value at both ends of a panel."""
    for y, value in ((up.end_px, up.high), (up.start_px, up.low)):
        svg.add("line", class_="grid", x1=LEFT, x2=RIGHT, y1=y, y2=y)
        svg.add("text", written(value), class_="e", x=LEFT - 6, y=y + 4)


def draw_values(svg: Svg, name: str, up: Axis, values: Values) -> None:
    """Draw a line through the values that are known; ``name`` is its class."""
    across = nights_axis(len(values))
    if known := [(across.px(n), up.px(value)) for n, value in enumerate(values) if value is not None]:
        svg.polyline(known, class_=name)


def draw_limit(svg: Svg, up: Axis, limit: float, text: str) -> None:
    """Draw a limit where it is; one off the axis is a word at the edge."""
    y = up.px(limit)
    if up.holds(limit):
        svg.add("line", class_="limit", x1=LEFT, x2=RIGHT, y1=y, y2=y)
    arrow = "" if up.holds(limit) else " ↑" if limit > up.high else " ↓"
    svg.add("text", f"limit {text}{arrow}", class_="e", x=RIGHT, y=12 if arrow else y - 3)


def draw_dates(svg: Svg, nights: Sequence[str], height: int, step: int = 0) -> None:
    """Write the first and the last night, and the night of the step where it has room."""
    svg.add("text", nights[0], class_="u", x=LEFT, y=height - 4)
    svg.add("text", nights[-1], class_="e", x=RIGHT, y=height - 4)
    x = nights_axis(len(nights)).px(step)
    if LEFT + 120 < x < RIGHT - 120:
        svg.add("text", nights[step], class_="m", x=x, y=height - 4)


def _draw_main(svg: Svg, series: Mapping[str, Any], values: Values, reference: Values) -> None:
    """Draw the panel of candidate and reference, with its axis, its limit and what the lines are."""
    written = partial(_written, unit=find_unit(series["unit"]) if series["unit"] else None)
    up = fitted([*values, *reference], *_MAIN)
    draw_ends(svg, up, written)
    steps = series["points"].get("limit") or []
    if steps and steps[-1][1] is not None:
        draw_limit(svg, up, steps[-1][1], written(steps[-1][1]))
    draw_values(svg, "reference", up, reference)
    draw_values(svg, "candidate", up, values)
    name = f"{series['quantity']} {series['stat']}".strip()
    label = "" if series["label"] == "defaults" else f" {series['label']}"
    lines = " (dotted: the reference)" if any(value is not None for value in reference) else ""
    where = f"{name}{label} · {series['rack']}/{series['board']}{lines}"
    svg.add("text", visible(where, 90), x=LEFT, y=12)


def _draw_ratios(svg: Svg, ratios: Values, step: int, *, of_ratio: bool) -> None:
    """Draw the candidate beside the reference, in per cent of the level before the step."""
    up, across = fitted(ratios, *_RATIO), nights_axis(len(ratios))
    draw_ends(svg, up, _percent)
    draw_values(svg, "ratio", up, ratios)
    known = [(n, ratio) for n, ratio in enumerate(ratios) if ratio is not None]
    for name, after in (("level", False), ("level new", True)):
        if part := [one for one in known if (one[0] >= step) is after]:
            y = up.px(fmean(ratio for _, ratio in part))
            svg.add("line", class_=name, x1=across.px(part[0][0]), x2=across.px(part[-1][0]), y1=y, y2=y)
    words = "beside the reference, which decides" if of_ratio else "beside the reference"
    svg.add("text", words, x=LEFT, y=_RATIO[0] - 6)


def _ratios(values: Values, reference: Values, step: int) -> Values:
    """Return the ratio at each point that has both, relative to their mean before ``step``; [] of too few."""
    pairs = zip(values, reference, strict=True)
    ratios = [value / other if value and other else None for value, other in pairs]
    known, before = ([ratio for ratio in part if ratio is not None] for part in (ratios, ratios[:step]))
    if len(known) < _FEWEST or not before:
        return []
    base = fmean(before)
    return [None if ratio is None else ratio / base - 1.0 for ratio in ratios]


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
