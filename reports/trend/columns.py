"""A series as trend.json holds it: columns over its points, limits as steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hil.reports.trend.naming import Number, label_of, metric_of, split_metric, tidy, tidy_all
from hil.reports.trend.points import Point, Series
from hil.reports.trend.runs import Run
from hil.thresholds import Thresholds

_OPTIONAL = ("low", "high", "reference")


def series_json(series: Series, runs: Sequence[Run], thresholds: Mapping[str, Thresholds]) -> dict[str, Any]:
    """Return a series without levels, changes and the id of its Allure result."""
    key, words = series.key, split_metric(series.key.metric)
    return {
        "id": key.series_id,
        "rack": key.rack,
        "board": key.board,
        "kind": key.kind,
        "simulated": "noise" if series.noise else "",
        "target": series.target,
        "bench": key.bench,
        "case_id": key.case_id,
        "label": str((series.case or {}).get("label") or label_of(key.case_id, thresholds)),
        "metric": key.metric,
        "quantity": words.quantity,
        "stat": words.stat,
        "unit": words.unit,
        "direction": direction_of(series, thresholds),
        "blocking": _blocking(series, thresholds),
        "profile": key.profile,
        "points": points_json(series.points),
        "now": now_of(series, runs),
        "levels": [],
        "changes": [],
        "test": "",
    }


def now_of(series: Series, runs: Sequence[Run]) -> int | None:
    """Return the position of the newest reported run among the points; None where none measured it."""
    positions = [n for n, point in enumerate(series.points) if runs[point.run].reported]
    return positions[-1] if positions else None


def direction_of(series: Series, thresholds: Mapping[str, Thresholds]) -> str:
    """Return which way is better: as the newest line says, else as the thresholds do."""
    if series.metric is not None:
        return str(series.metric.get("direction", "lower"))
    metric = metric_of(series.key, thresholds)
    return metric.direction if metric else "lower"


def _blocking(series: Series, thresholds: Mapping[str, Thresholds]) -> bool:
    if series.limited is not None:
        return bool(series.limited["blocking"])
    metric = metric_of(series.key, thresholds)
    return bool(metric and metric.blocking)


def points_json(points: Sequence[Point]) -> dict[str, Any]:
    """Return the columns; those that no point has anything for are left out."""
    found: dict[str, Any] = {
        "run": [point.run for point in points],
        "value": tidy_all(point.value for point in points),
        "outcome": "".join(point.outcome for point in points),
    }
    for name in _OPTIONAL:
        column = tidy_all(getattr(point, name) for point in points)
        if any(value is not None for value in column):
            found[name] = column
    if any(point.boots is not None for point in points):
        found["boots"] = [point.boots for point in points]
    if steps := limit_steps(points):
        found["limit"] = steps
    if at_least := [position for position, point in enumerate(points) if point.at_least]:
        found["at_least"] = at_least
    return found


def limit_steps(points: Sequence[Point]) -> list[list[Number]]:
    """Return [position, limit] wherever the limit changed; null from where there is none any more.

    A run that only the history knows says nothing of limits: the one before it goes on.
    """
    steps: list[list[Number]] = []
    last: Number = None
    for position, point in enumerate(points):
        limit = tidy(point.limit)
        if point.judged and limit != last:
            steps.append([position, limit])
            last = limit
    return steps
