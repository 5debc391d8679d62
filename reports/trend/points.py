# SPDX-License-Identifier: Apache-2.0
"""Points of the trend: what each run says of each series, from boots where they are known.

What the boots of each session come to: their median, and an interval of it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hil.base.numeric import np
from hil.metrics import stats
from hil.metrics.sessions import History, SeriesHistory
from hil.model import SeriesId
from hil.reports.trend.naming import SeriesKey
from hil.reports.trend.runs import TrendRun

SIDE_ALPHA = 0.025  # either bound of the 95 % interval is wrong with this probability


@dataclass(frozen=True)
class BootsOf:
    """The boots of one session. ``median`` is +inf where it fell among timeouts; ``low`` and ``high`` are
    None where so few boots give no bound."""

    median: float
    low: float | None
    high: float | None
    boots: int


def by_session(series: SeriesHistory | None) -> dict[int, BootsOf]:
    """Return the boots of each session by its position, in the metric's unit.

    The interval is that of hil.metrics.stats.quantile_interval() for independent boots: order statistics,
    exact binomial ranks. Below 6 boots there is none.
    """
    if series is None or not len(series):
        return {}
    order = np.lexsort((series.value, series.session))
    values, sessions = series.value[order], series.session[order]
    starts = np.flatnonzero(np.diff(sessions, prepend=-1))
    ends = np.append(starts[1:], len(sessions))
    ordered = values.tolist()
    return {
        number: _boots(ordered[start:end])
        for number, start, end in zip(sessions[starts].tolist(), starts.tolist(), ends.tolist(), strict=True)
    }


def _boots(ordered: list[float]) -> BootsOf:
    count = len(ordered)
    low, high = ranks(count)
    return BootsOf(
        median=_middle(ordered),
        low=ordered[low - 1] if low >= 1 else None,
        high=ordered[high - 1] if high <= count and math.isfinite(ordered[high - 1]) else None,
        boots=count,
    )


def _middle(ordered: list[float]) -> float:
    below, above = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return below if below == above else (below + above) / 2


@functools.cache
def ranks(boots: int) -> tuple[int, int]:
    """Return the ranks (from 1) of the median's bounds; 0 and ``boots + 1`` where there is none."""
    return stats.quantile_ranks(boots, 0.5, SIDE_ALPHA)


LETTERS = {"pass": "p", "regressed": "r", "improved": "i", "undecided": "n", "no-baseline": "b"}
UNKNOWN = "-"


class Point(NamedTuple):
    """One run's word on a series; ``run`` is its position. ``low`` and ``high`` bound the median over the
    boots (95 %). ``judged`` says that the gate's own figure is known, and with it the limit.

    A tuple, because a year of nights holds some hundred thousand.
    """

    run: int
    value: float | None
    at_least: bool = False
    outcome: str = UNKNOWN
    low: float | None = None
    high: float | None = None
    reference: float | None = None
    boots: int | None = None
    limit: float | None = None
    judged: bool = False


@dataclass
class Gathered:
    """A series as it is being put together: points by run, and what the newest line says of it."""

    points: dict[int, Point] = field(default_factory=dict)
    target: str = ""
    case: Mapping[str, Any] | None = None
    metric: Mapping[str, Any] | None = None
    noise: bool = False
    limited: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class TrendSeries:
    """A series and its points in order of time. ``case`` and ``metric`` are what the newest judged
    run says of it, ``limited`` the newest one with a limit; None where none does. ``noise`` says
    that some of its figures were measured under simulated noise."""

    key: SeriesKey
    points: tuple[Point, ...]
    target: str
    case: Mapping[str, Any] | None
    metric: Mapping[str, Any] | None
    limited: Mapping[str, Any] | None
    noise: bool


def series_of(runs: Sequence[TrendRun], history: History, noisy: frozenset[str]) -> list[TrendSeries]:
    """Return all series of the runs, by name. ``noisy`` are the ids of runs that say that noise was
    simulated.

    A series is in no run that did not measure it: a metric that vanished ends, and does not become a gap.
    """
    found: dict[SeriesKey, Gathered] = {}
    run_of = {run.session: number for number, run in enumerate(runs) if run.session is not None}
    for (series_id, role), entry in history.entries.items():
        if role == "candidate":
            boots, beside = by_session(entry), by_session(history.series(series_id, "reference"))
            _add_boots(found, SeriesId.parse(series_id), _Drawn(runs, run_of, history, boots, beside))
    for number, run in enumerate(runs):
        _add_line(found, number, run, noisy=run.run_id in noisy)
    return [_finished(key, found[key]) for key in sorted(found)]


@dataclass(frozen=True)
class _Drawn:
    """The boots of one series by session, and which run is which session."""

    runs: Sequence[TrendRun]
    run_of: Mapping[int, int]
    history: History
    candidate: Mapping[int, BootsOf]
    reference: Mapping[int, BootsOf]


def _add_boots(found: dict[SeriesKey, Gathered], name: SeriesId, drawn: _Drawn) -> None:
    for session, boots in drawn.candidate.items():
        number = drawn.run_of.get(session)
        if number is None:
            continue
        measured = drawn.history.sessions[session]
        board = measured.boards[name.board]
        profile = drawn.runs[number].profile
        key = SeriesKey(name.rack, name.board, board.kind, profile, name.case_id, name.metric, name.product)
        entry = found.setdefault(key, Gathered())
        entry.points[number] = _of_boots(number, boots, drawn.reference.get(session))
        entry.target = board.target
        entry.noise = entry.noise or bool(measured.conditions.get(f"{name.board}.noise_simulated"))


def _of_boots(run: int, boots: BootsOf, reference: BootsOf | None) -> Point:
    beyond = math.isinf(boots.median)
    return Point(
        run,
        value=None if beyond else boots.median,
        at_least=beyond,
        low=boots.low if boots.low is not None and math.isfinite(boots.low) else None,
        high=boots.high,
        reference=reference.median if reference and math.isfinite(reference.median) else None,
        boots=boots.boots,
    )


def _add_line(found: dict[SeriesKey, Gathered], number: int, run: TrendRun, *, noisy: bool) -> None:
    for case in run.line["cases"] if run.line else ():
        start = (run.rack, case["board"], case["kind"], run.profile, case["case_id"])
        for name, metric in case["metrics"].items():
            entry = found.setdefault(SeriesKey(*start, name, run.product), Gathered())
            entry.points[number] = _judged(entry.points.get(number) or Point(number, None), metric)
            entry.case, entry.metric, entry.target = case, metric, case["target"]
            entry.noise = entry.noise or noisy
            if "limit" in metric:
                entry.limited = metric


def _judged(point: Point, metric: Mapping[str, Any]) -> Point:
    """Add what the gate reported: outcome and limit, and its figure where no median over boots is."""
    value, at_least = point.value, point.at_least
    if value is None:  # beyond the timeout the gate tells how long that was
        value, at_least = metric["value"], at_least or bool(metric.get("at_least"))
    letter = LETTERS.get(metric["outcome"], UNKNOWN)
    return Point(
        point.run,
        value,
        at_least,
        letter,
        point.low,
        point.high,
        point.reference,
        point.boots,
        metric.get("limit"),
        judged=True,
    )


def _finished(key: SeriesKey, entry: Gathered) -> TrendSeries:
    points = tuple(entry.points[number] for number in sorted(entry.points))
    return TrendSeries(key, points, entry.target, entry.case, entry.metric, entry.limited, entry.noise)
