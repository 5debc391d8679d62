# SPDX-License-Identifier: Apache-2.0
"""Draws into each test's description how its figure moved over the reports before this one.

Allure keeps the figures of earlier reports in its history, and shows them on no test's page.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from hil.base.units import UNITS, convert, find_unit, format_value
from hil.base.untrusted import visible
from hil.model import SeriesVerdict
from hil.reports.allure.identity import id_of
from hil.reports.names import human_metric
from hil.reports.site.runs import ShownRun

MOST_TESTS = 400  # of a run: each costs its result a reading and a writing
_RESULT = "-result.json"
_FEWEST = 2  # earlier reports before there is a line
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM, _HEIGHT = 640, 64, 8, 24.0, 116.0, 134  # pixels
_AIR = 0.12  # of the range of the values, above and below them
_LINE, _LIMIT, _INK = "#2f74d0", "#c62828", "#77808c"


@dataclass(frozen=True)
class _Past:
    """Values of one series, oldest first, the newest of them this run's; ``days`` are of its points."""

    item: SeriesVerdict
    unit: str
    values: Sequence[float]
    days: Sequence[str]


def draw_past(folder: Path, run: ShownRun, earlier: Sequence[Mapping[str, Any]]) -> None:
    """Add a chart to the descriptions of a run's results, which are copies in ``folder``.

    ``earlier`` are Allure's points of the reports before, oldest first. A test without
    earlier figures stays as it is.
    """
    points = [point for point in earlier if isinstance(point.get("metrics"), dict)]
    if len(points) < _FEWEST:
        return
    newest = {one["key"]: one for path in folder.glob("*-perf.json") for one in json.loads(path.read_bytes())}
    results = {id_of(path.name.removesuffix(_RESULT)): path for path in folder.glob(f"*{_RESULT}")}
    for place, item in list(_leading(run.verdict.series, newest).items())[:MOST_TESTS]:
        past = _past(item, newest[item.series_id], points, str(run.line["started_utc"])[:10])
        path = results.get(run.test_ids.get(place, ""))
        if len(past.values) > _FEWEST and path:
            result = json.loads(path.read_bytes())
            first, end, rest = str(result.get("descriptionHtml", "")).partition("</p>")
            result["descriptionHtml"] = f"{first}{end}\n{_drawn(past)}{rest}"
            path.unlink()  # it is a second name of the run's own
            path.write_text(json.dumps(result), encoding="utf-8")


def _leading(
    series: Sequence[SeriesVerdict], newest: Mapping[str, Any]
) -> dict[tuple[str, str], SeriesVerdict]:
    """Return the series that tells most of each (board, case id): one with a limit, the 95th percentile."""
    found: dict[tuple[str, str], SeriesVerdict] = {}
    for item in sorted(series, key=_rank):
        if item.series_id in newest:
            found.setdefault((item.board, item.case_id), item)
    return found


def _rank(item: SeriesVerdict) -> tuple[bool, bool, bool]:
    return not item.blocking, item.limit is None, "_p95" not in item.metric


def _past(
    item: SeriesVerdict, newest: Mapping[str, Any], points: Sequence[Mapping[str, Any]], day: str
) -> _Past:
    earlier = [
        (value, str(point.get("started_utc", ""))[:10])
        for point in points
        if isinstance(value := point["metrics"].get(item.series_id), int | float)
    ]
    both = [*earlier, (float(newest["value"]), day)]
    return _Past(item, str(newest["unit"]), [value for value, _ in both], [night for _, night in both])


def _drawn(past: _Past) -> str:
    """Return title and picture: an SVG in an address, for Allure takes drawings out of a description.

    Its colours are to be read on white and on black, as it knows nothing of the page around it.
    """
    unit = next((unit for unit in UNITS if unit.symbol == past.unit), None)
    item, count = past.item, len(past.values)
    low, high = min(past.values), max(past.values)
    air = max((high - low) * _AIR, abs(high) * _AIR / 10, 1e-9)
    low, high = low - air, high + air

    def y(value: float) -> float:
        return _BOTTOM - (value - low) / (high - low) * (_BOTTOM - _TOP)

    def written(value: float) -> str:
        return format_value(float(f"{value:.3g}"), unit) if unit else f"{value:.3g}"

    place = [_LEFT + n / max(count - 1, 1) * (_WIDTH - _LEFT - _RIGHT) for n in range(count)]
    drawn = " ".join(f"{x:.1f},{y(value):.1f}" for x, value in zip(place, past.values, strict=True))
    parts = [*_axis(_TOP, written(high)), *_axis(_BOTTOM, written(low))]
    if unit and item.limit is not None:
        parts += _limit(convert(item.limit, find_unit(item.unit), unit), low, high, y, written)
    parts.append(f'<polyline points="{drawn}" fill="none" stroke="{_LINE}" stroke-width="1.6"/>')
    parts.append(f'<circle cx="{place[-1]:.1f}" cy="{y(past.values[-1]):.1f}" r="3" fill="{_LINE}"/>')
    parts.append(_text(_LEFT, _HEIGHT - 4, escape(past.days[0])))
    parts.append(_text(_WIDTH - _RIGHT, _HEIGHT - 4, escape(past.days[-1]), end=True))
    title = f"{human_metric(item)} over this report and {count - 1} before it"
    name = escape(visible(title))
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" font-family="sans-serif">{"".join(parts)}</svg>'
    )
    data = base64.b64encode(svg.encode()).decode()
    picture = f'<img src="data:image/svg+xml;base64,{data}" alt="{name}" width="{_WIDTH}">'
    return f"<p><strong>{name}</strong></p><p>{picture}</p>"


def _limit(
    limit: float, low: float, high: float, y: Callable[[float], float], written: Callable[[float], str]
) -> list[str]:
    if low <= limit <= high:
        line = (
            f'<path d="M{_LEFT} {y(limit):.1f}H{_WIDTH - _RIGHT}" stroke="{_LIMIT}" stroke-dasharray="5 4"/>'
        )
        return [line, _text(_WIDTH - _RIGHT, y(limit) - 3, f"limit {escape(written(limit))}", end=True)]
    arrow = "↑" if limit > high else "↓"
    return [_text(_WIDTH - _RIGHT, 12, f"limit {escape(written(limit))} {arrow}", end=True)]


def _axis(y: float, text: str) -> list[str]:
    line = f'<path d="M{_LEFT} {y}H{_WIDTH - _RIGHT}" stroke="{_INK}" opacity=".15"/>'
    return [line, _text(_LEFT - 6, y + 4, escape(text), end=True)]


def _text(x: float, y: float, text: str, *, end: bool = False) -> str:
    anchor = ' text-anchor="end"' if end else ""
    return f'<text x="{x}" y="{y:.0f}" font-size="11" fill="{_INK}"{anchor}>{text}</text>'
