"""Where a series was judged by nights, and its level between the change points found there."""

from __future__ import annotations

import datetime
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import scipy.special

from hil.history.nightly.nights import TRIGGER
from hil.history.nightly.reference import tonight
from hil.reports.trend.numbers import Number, tidy
from hil.reports.trend.points import Point, Series
from hil.reports.trend.runs import Run

LAST_NIGHTS = 120  # as `hil changes` looks at
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


def judged_points(series: Series, runs: Sequence[Run], *, last: int = LAST_NIGHTS) -> list[Judged]:
    """Return the points that hil.history.nightly.survey looks at: the last whose boots have a logarithm."""
    found = [
        (position, night_of(runs[point.run]), point) for position, point in enumerate(series.points)
        if _counts(point, runs[point.run])
    ]  # fmt: skip
    nights = list(dict.fromkeys((night, runs[point.run].commit) for _, night, point in found))[-last:]
    wanted = set(nights)
    return [
        Judged(position, night, math.log(point.value or 1.0))
        for position, night, point in found
        if (night, runs[point.run].commit) in wanted
    ]


def night_of(run: Run) -> datetime.date:
    """Return the date of the evening of the night (noon to noon UTC) in which a run started."""
    return _night_of(run.started_utc)


@functools.cache
def _night_of(started_utc: str) -> datetime.date:
    moment = datetime.datetime.fromisoformat(started_utc)
    return tonight(moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC))


def _counts(point: Point, run: Run) -> bool:
    if run.session is None or run.trigger != TRIGGER or run.dirty or point.boots is None:
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
    return float(scipy.special.stdtrit(freedom, 1 - _ALPHA / 2))


def level_at(levels: Sequence[Level], position: int) -> tuple[Level | None, Level | None]:
    """Return the level before a position, and the one that begins there or holds it."""
    before = [level for level in levels if level.last < position]
    after = [level for level in levels if level.last >= position]
    return (before[-1] if before else None), (after[0] if after else None)
