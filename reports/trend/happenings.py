"""Events on the trend: which series they show in, and where the line of each changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hil.history.nightly.events import Event
from hil.history.nightly.survey import Finding
from hil.reports.trend.nights import Judged, Level, judged_points, level_at, levels_of, night_of, position_of
from hil.reports.trend.numbers import tidy
from hil.reports.trend.points import Series
from hil.reports.trend.runs import Run

_Told = Sequence[tuple[int, Finding]]  # position of an event, and a finding of it


@dataclass(frozen=True)
class Shown:
    """A finding where its series shows it: a position in the points, told by the event at ``event``."""

    event: int
    position: int
    finding: Finding


def add_levels_and_changes(
    series: Sequence[Series],
    columns: Sequence[dict[str, Any]],
    runs: Sequence[Run],
    events: Sequence[Event],
) -> None:
    """Put ``levels`` and ``changes`` into the series' columns."""
    told: dict[str, list[tuple[int, Finding]]] = {}
    for number, event in enumerate(events):
        for finding in event.findings:
            told.setdefault(finding.point.series_id, []).append((number, finding))
    for one, column in zip(series, columns, strict=True):
        judged = judged_points(one, runs)
        shown = _shown(judged, told.get(one.key.series_id, ()))
        levels = levels_of(judged, [found.position for found in shown])
        column["levels"] = [level.to_json() for level in levels]
        column["changes"] = [_change_json(found, levels) for found in shown]


def _shown(judged: Sequence[Judged], told: _Told) -> list[Shown]:
    """Return the findings that the points show; one of a night that is not drawn any more has no place."""
    places = ((event, position_of(judged, finding.point.night), finding) for event, finding in told)
    found = [Shown(event, place, finding) for event, place, finding in places if place is not None]
    return sorted(found, key=lambda one: (one.position, one.event))


def _change_json(shown: Shown, levels: Sequence[Level]) -> dict[str, Any]:
    point = shown.finding.point
    before, after = level_at(levels, shown.position)
    return {
        "event": shown.event,
        "position": shown.position,
        "change": tidy(point.change),
        "low": tidy(point.low),
        "high": tidy(point.high),
        "of_ratio": point.of_ratio,
        "before": tidy(before.value) if before else None,
        "after": tidy(after.value) if after else None,
    }


def events_json(
    events: Sequence[Event], columns: Sequence[Mapping[str, Any]], runs: Sequence[Run]
) -> list[dict[str, Any]]:
    """Return the events with positions of runs and series in place of series ids, the most telling first."""
    places: dict[str, list[int]] = {}
    for number, column in enumerate(columns):
        places.setdefault(column["id"], []).append(number)
    return [_event_json(number, event, places, columns, runs) for number, event in enumerate(events)]


def _event_json(
    number: int,
    event: Event,
    places: Mapping[str, Sequence[int]],
    columns: Sequence[Mapping[str, Any]],
    runs: Sequence[Run],
) -> dict[str, Any]:
    series = [place for name in dict.fromkeys(event.series_ids) for place in places.get(name, ())]
    first = {
        place: columns[place]["points"]["run"][change["position"]]
        for place in reversed(series)
        for change in reversed(columns[place]["changes"])
        if change["event"] == number
    }
    own = {name: value for name, value in event.to_json().items() if name != "series_ids"}
    own |= {name: tidy(own[name]) for name in ("change", "low", "high")}
    run = min(first.values()) if first else _run_of_night(event, runs)
    return {**own, "run": run, "series": [place for place in series if place in first] or series}


def _run_of_night(event: Event, runs: Sequence[Run]) -> int:
    """Return the event's first run that is drawn, where the points of its night are not any more."""
    own = (number for number, run in enumerate(runs) if run.rack in event.racks and run.started_utc)
    return next((number for number in own if night_of(runs[number]) >= event.night), len(runs) - 1)
