"""The verdict's figures in the form in which Allure keeps a metric's history."""

from __future__ import annotations

from typing import Any

from hil.base.units import Unit, convert, find_unit
from hil.model import SeriesVerdict
from hil.reports.allure.identity import stable_uuid
from hil.reports.allure.story import RunStory, Story
from hil.reports.names import short_metric

# One unit a dimension, whatever the value: a history that changes from µs to ms would show a jump.
_SHOWN = {"time": "ms", "ratio": "percent", "rate": "mbps", "size": "bytes"}
_FINE_UNIT = "us"


def performance_of(run: RunStory, story: Story, start: int, stop: int) -> list[dict[str, Any]]:
    """Return one object a series with a value; ``start`` and ``stop`` are in ms since 1970.

    A value of which only a lower bound is known is left out: this format has no "≥", and Allure would
    compare the bound with the figures of other runs.
    """
    return [
        {
            "id": stable_uuid(run.run_id, item.series_id),
            "key": item.series_id,
            "value": _significant(convert(item.value, find_unit(item.unit), unit)),
            "start": start,
            "stop": stop,
            "title": short_metric(item),
            "unit": unit.symbol,
            "group": f"{story.rack}/{story.board}/{story.bench}/{story.label}",
            "groupTitle": story.title,
            "better": item.direction,
        }
        for item in story.series
        if item.value is not None and not item.at_least
        for unit in [shown_unit(story, item)]
    ]


def shown_unit(story: Story, item: SeriesVerdict) -> Unit:
    """Return the unit in which a metric's history is kept; it must not depend on the value of the day.

    Times are in ms where the bench has a limit of 1 ms or more for the same quantity, else in µs.
    """
    own = find_unit(item.unit)
    if own.dimension == "time" and not _is_slow(story, item):
        return find_unit(_FINE_UNIT)
    return find_unit(_SHOWN.get(own.dimension, own.name))


def _is_slow(story: Story, item: SeriesVerdict) -> bool:
    metrics = story.thresholds.metrics if story.thresholds else {}
    if story.thresholds is None or item.metric not in metrics:
        return True
    terms = metrics[item.metric].terms
    alike = {name: metric.unit for name, metric in metrics.items() if metric.terms == terms}
    limits = [
        convert(limit.value, alike[metric], find_unit("ms"))
        for limit in story.thresholds.limits
        if (metric := str(limit.where.conditions.get("metric"))) in alike
    ]
    return any(limit >= 1.0 for limit in limits)


def _significant(value: float) -> float:
    return float(f"{value:.9g}")  # verdicts have six digits
