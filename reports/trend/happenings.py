# SPDX-License-Identifier: Apache-2.0
"""Events on the trend: which series they show in, and where the line of each changes.

Where a series was judged by nights, and its level between the change points found there.
"""

from __future__ import annotations

import datetime
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hil.base import special
from hil.history.nightly.event_lines import open_changes
from hil.history.nightly.events import NightEvent
from hil.history.nightly.nights import COUNTED
from hil.history.nightly.reference import tonight
from hil.history.nightly.survey import NightFinding
from hil.reports.trend.commits import commit_json
from hil.reports.trend.naming import Number, tidy
from hil.reports.trend.points import Point, TrendSeries
from hil.reports.trend.runs import TrendRun
from hil.store import RunInfo

LAST_NIGHTS = 120  # as `hil changes` looks at
_READ = ("p50", "p95", "p99", "")  # statistics that need no explanation
_ALPHA = 0.05
_LARGEST_LOG = 700.0  # exp() of more is no float


@dataclass(frozen=True)
class Judged:
    """A point that counts as a night: its position in the series, and the logarithm of its value."""

    position: int
    night: datetime.date
    log: float


@dataclass(frozen=True)
class Level:
    """The mean level of nights between change points, by positions in the series' points (inclusive).

    ``value`` is in the metric's unit, ``low`` and ``high`` bound it (95 %; None of a single night).
    """

    first: int
    last: int
    value: float
    low: float | None
    high: float | None

    def to_json(self) -> dict[str, Number]:
        value, low, high = tidy(self.value), tidy(self.low), tidy(self.high)
        return {"from": self.first, "to": self.last, "value": value, "low": low, "high": high}


def judged_points(series: TrendSeries, runs: Sequence[TrendRun]) -> list[Judged]:
    """Return the points that hil.history.nightly.survey looks at: the last whose boots have a logarithm."""
    found = [
        (position, night_of(runs[point.run]), point) for position, point in enumerate(series.points)
        if _counts(point, runs[point.run])
    ]  # fmt: skip
    nights = list(dict.fromkeys((night, runs[point.run].commit) for _, night, point in found))[-LAST_NIGHTS:]
    wanted = set(nights)
    return [
        Judged(position, night, math.log(point.value or 1.0))
        for position, night, point in found
        if (night, runs[point.run].commit) in wanted
    ]


def night_of(run: TrendRun) -> datetime.date:
    """Return the date of the evening of the night (noon to noon UTC) in which a run started."""
    return _night_of(run.started_utc)


@functools.cache
def _night_of(started_utc: str) -> datetime.date:
    moment = datetime.datetime.fromisoformat(started_utc)
    return tonight(moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC))


def _counts(point: Point, run: TrendRun) -> bool:
    if run.session is None or run.trigger not in COUNTED or run.dirty or point.boots is None:
        return False
    return point.value is not None and point.value > 0 and not point.at_least


def position_of(judged: Sequence[Judged], night: datetime.date) -> int | None:
    """Return the position of the first point of a night; None where the series was not measured in it."""
    return next((one.position for one in judged if one.night == night), None)


def levels_of(judged: Sequence[Judged], changes: Sequence[int]) -> list[Level]:
    """Return the levels before, between and after the positions at which something changed."""
    parts: list[list[Judged]] = [[]]
    starts = set(changes)
    for one in judged:
        if one.position in starts and parts[-1]:
            parts.append([])
        parts[-1].append(one)
    return [_level(part) for part in parts if part]


def _level(part: Sequence[Judged]) -> Level:
    logs = [one.log for one in part]
    count = len(logs)
    mean = math.fsum(logs) / count
    low = high = None
    if count > 1:
        variance = math.fsum((log - mean) ** 2 for log in logs) / (count - 1)
        half = _student(count - 1) * math.sqrt(variance / count)
        low, high = _exp(mean - half), _exp(mean + half)
    return Level(part[0].position, part[-1].position, _exp(mean), low, high)


def _exp(log: float) -> float:
    return math.exp(min(log, _LARGEST_LOG))


@functools.cache
def _student(freedom: int) -> float:
    return special.stdtrit(freedom, 1 - _ALPHA / 2)


def level_at(levels: Sequence[Level], position: int) -> tuple[Level | None, Level | None]:
    """Return the level before a position, and the one that begins there or holds it."""
    before = [level for level in levels if level.last < position]
    after = [level for level in levels if level.last >= position]
    return (before[-1] if before else None), (after[0] if after else None)


_Told = Sequence[tuple[int, NightFinding]]  # position of an event, and a finding of it


@dataclass(frozen=True)
class ShownFinding:
    """A finding where its series shows it: a position in the points, told by the event at ``event``."""

    event: int
    position: int
    finding: NightFinding


def add_levels_and_changes(
    series: Sequence[TrendSeries],
    columns: Sequence[dict[str, Any]],
    runs: Sequence[TrendRun],
    events: Sequence[NightEvent],
) -> None:
    """Put ``levels`` and ``changes`` into the series' columns."""
    told: dict[str, list[tuple[int, NightFinding]]] = {}
    for number, event in enumerate(events):
        for finding in event.findings:
            told.setdefault(finding.point.series_id, []).append((number, finding))
    for one, column in zip(series, columns, strict=True):
        judged = judged_points(one, runs)
        shown = _shown(judged, told.get(one.key.series_id, ()))
        levels = levels_of(judged, [found.position for found in shown])
        column["levels"] = [level.to_json() for level in levels]
        column["changes"] = [_change_json(found, levels) for found in shown]


def _shown(judged: Sequence[Judged], told: _Told) -> list[ShownFinding]:
    """Return the findings that the points show; one of a night that is not drawn any more has no place."""
    places = ((event, position_of(judged, finding.point.night), finding) for event, finding in told)
    found = [ShownFinding(event, place, finding) for event, place, finding in places if place is not None]
    return sorted(found, key=lambda one: (one.position, one.event))


def _change_json(shown: ShownFinding, levels: Sequence[Level]) -> dict[str, Any]:
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
    events: Sequence[NightEvent],
    columns: Sequence[Mapping[str, Any]],
    runs: Sequence[TrendRun],
) -> list[dict[str, Any]]:
    """Return the events with positions of runs and series in place of series ids, the most telling first."""
    places: dict[str, list[int]] = {}
    for number, column in enumerate(columns):
        places.setdefault(column["id"], []).append(number)
    return [_event_json(number, event, places, columns, runs) for number, event in enumerate(events)]


def changes_beside(events: Sequence[Mapping[str, Any]], info: RunInfo) -> list[str]:
    """Return the words of what is open in the nights of a run's rack and product, for its banner.

    None of a pull request: what the default branch did is not its doing.
    """
    if info.trigger == "pr":
        return []
    return open_changes(
        [one for one in events if info.rack in one["racks"] and info.product in one.get("products", [""])]
    )


def _event_json(
    number: int,
    event: NightEvent,
    places: Mapping[str, Sequence[int]],
    columns: Sequence[Mapping[str, Any]],
    runs: Sequence[TrendRun],
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
    drawn = [place for place in series if place in first] or series
    return {
        **own,
        "commit": commit_json(event.good, event.bad, runs),
        "run": run,
        "series": drawn,
        "picture": {"series": _pictured(drawn, columns)} if drawn else {},
    }


def _pictured(drawn: Sequence[int], columns: Sequence[Mapping[str, Any]]) -> int:
    """Return the series to show an event by: of the quantity that its words quote, which is the first one's,
    the surest that can fail a run and that a person can read."""
    quoted = [place for place in drawn if columns[place]["quantity"] == columns[drawn[0]]["quantity"]]
    read = [place for place in quoted if columns[place]["stat"] in _READ]
    return next((place for place in read if columns[place]["blocking"]), (read or quoted)[0])


def _run_of_night(event: NightEvent, runs: Sequence[TrendRun]) -> int:
    """Return the event's first run that is drawn, where the points of its night are not any more."""
    there = [run.rack in event.racks and run.product in event.products for run in runs]
    own = (number for number, run in enumerate(runs) if there[number] and run.started_utc)
    return next((number for number in own if night_of(runs[number]) >= event.night), len(runs) - 1)
