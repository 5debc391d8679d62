# SPDX-License-Identifier: Apache-2.0
"""Draws into each test's description how its figure moved over the reports before this one.

Allure keeps the figures of earlier reports in its history, and shows them on no test's page.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
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
from hil.reports.svg import Svg
from hil.reports.trend.picture import (
    WIDTH,
    draw_dates,
    draw_ends,
    draw_limit,
    draw_values,
    fitted,
    nights_axis,
)

MOST_TESTS = 400  # of a run: each costs its result a reading and a writing
_RESULT = "-result.json"
_FEWEST = 2  # earlier reports before there is a line
_PANEL, _HEIGHT = (24.0, 116.0), 134  # pixels: from its top to its bottom, and of the drawing
_STYLE = """
text { font: 11px sans-serif; fill: #77808c; } .e { text-anchor: end; } .m { text-anchor: middle; }
.grid { stroke: #77808c; opacity: .15; } .limit { stroke: #c62828; stroke-dasharray: 5 4; }
.candidate { fill: none; stroke: #2f74d0; stroke-width: 1.6; } circle { fill: #2f74d0; }
"""


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

    def written(value: float) -> str:
        return format_value(float(f"{value:.3g}"), unit) if unit else f"{value:.3g}"

    item, count, up = past.item, len(past.values), fitted(past.values, *_PANEL)
    svg = Svg(WIDTH, _HEIGHT)
    svg.add("style", _STYLE)
    draw_ends(svg, up, written)
    if unit and item.limit is not None:
        limit = convert(item.limit, find_unit(item.unit), unit)
        draw_limit(svg, up, limit, written(limit))
    draw_values(svg, "candidate", up, past.values)
    svg.add("circle", cx=nights_axis(count).px(count - 1), cy=up.px(past.values[-1]), r=3)
    draw_dates(svg, past.days, _HEIGHT)
    name = escape(visible(f"{human_metric(item)} over this report and {count - 1} before it"))
    data = base64.b64encode(svg.to_bytes()).decode()
    picture = f'<img src="data:image/svg+xml;base64,{data}" alt="{name}" width="{WIDTH}">'
    return f"<p><strong>{name}</strong></p><p>{picture}</p>"
