# SPDX-License-Identifier: Apache-2.0
"""What the last run measured otherwise than the runs before it, where no history of nights can tell yet.

A plain rule for few runs, and a cautious one: it is said, and decides nothing. A figure is another one where
it is half as much again as all before it; after two runs or more also where it is REACH times as far from
their middle as they are apart, by ten per cent at least. Two runs of one board may agree or differ by luck:
how far runs are apart is asked of all boards that measured the same, and most of these must have gone that
way. Maxima and their like, which hang on one sample of hundreds, are not asked.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hil.history.nightly.event_words import change_word, percent
from hil.history.nightly.nights import TRIGGER
from hil.metrics.words import STATISTICS, metric_words
from hil.model import IMPORTED, UNREAL
from hil.reports.trend.naming import tidy
from hil.reports.trend.points import Point, Series
from hil.reports.trend.runs import Run

FEW_NIGHTS = 10  # from so many on, change points tell
MOST_BEFORE = 10  # runs that the last one is compared with
MOST_SAID = 10
BEYOND = math.log(1.5)
REACH = 3.0
LEAST = math.log(1.1)
DIRTY_NOTE = "The last run, or one that it was compared with, was of sources with uncommitted changes."
_FEW_UNITS = 5  # a whole number that differs by less from another may differ by its rounding
_LEADING = ("p95", "p99", "p50", "mean", "tail5", "p90", "")
_TWICE = math.log(2)


@dataclass(frozen=True)
class _Compared:
    """A series in the last run beside those before: logarithms of ratios to the middle of these."""

    place: int
    series: Series
    column: Mapping[str, Any]
    before: int
    log: float
    nearest: float  # the least of them, beside any run before
    apart: float
    few_units: bool
    at_least: bool
    beside: bool  # of the ratio to the reference

    @property
    def stat(self) -> str:
        return metric_words(self.series.key.metric).stat

    @property
    def worse(self) -> bool:
        return bool(self.column["direction"] == "lower") == (self.log > 0)


def since_last(
    series: Sequence[Series], columns: Sequence[Mapping[str, Any]], runs: Sequence[Run]
) -> list[dict[str, Any]]:
    """Return what the newest reported run of each rack and product measured otherwise, most telling first.

    Each has ``series`` (the position of the one that shows it), ``change`` (the ratio to the runs before: 4
    is four times as much) and ``words``. The runs before are those of the same purpose, whether or not their
    sources had changes. Of a pull request nothing is said, as its base was measured beside it; nor of nights
    of which there are FEW_NIGHTS.
    """
    newest = {run.place: number for number, run in enumerate(runs) if run.reported}
    asked = {number for number in newest.values() if _is_asked(number, runs)}
    found = [
        one
        for place, (own, column) in enumerate(zip(series, columns, strict=True))
        if own.points[-1].run in asked and metric_words(own.key.metric).stat in _LEADING
        if (one := _compared(place, own, column, runs))
    ]
    groups = sorted(_groups(found), key=_rank)
    return [_json(group, found) for group in groups[:MOST_SAID]]


def _is_asked(number: int, runs: Sequence[Run]) -> bool:
    own = runs[number]
    if own.trigger in ("pr", IMPORTED):
        return False
    nights = sum(run.place == own.place and run.trigger == TRIGGER for run in runs[:number])
    return own.trigger != TRIGGER or nights < FEW_NIGHTS


def _compared(place: int, series: Series, column: Mapping[str, Any], runs: Sequence[Run]) -> _Compared | None:
    last, trigger = series.points[-1], runs[series.points[-1].run].trigger
    before = [one for one in series.points[:-1] if runs[one.run].trigger == trigger and not one.at_least]
    before = [one for one in before if one.value is not None and one.value > 0][-MOST_BEFORE:]
    if not before or last.value is None or last.value <= 0:
        return None
    beside = all(one.reference for one in (last, *before)) and not last.at_least
    own, *others = (_log(one, beside=beside) for one in (last, *before))
    log = own - statistics.median(others)
    return _Compared(
        place,
        series,
        column,
        len(others),
        log,
        min((own - other for other in others), key=lambda one: one if log > 0 else -one),
        max(others) - min(others),
        _differ_by_few_units(last, before),
        last.at_least,
        beside,
    )


def _log(point: Point, *, beside: bool) -> float:
    value = math.log(point.value or 1.0)
    return value - math.log(point.reference) if beside and point.reference else value


def _differ_by_few_units(last: Point, before: Iterable[Point]) -> bool:
    values = [one.value or 0.0 for one in (last, *before)]
    whole = all(value.is_integer() for value in map(float, values))
    return whole and min(abs(values[0] - value) for value in values[1:]) < _FEW_UNITS


_Key = tuple[str, ...]


def _groups(found: Sequence[_Compared]) -> list[list[_Compared]]:
    """Return what is otherwise, by quantity of a bench and by which way it went."""
    alike: dict[_Key, list[_Compared]] = {}
    for one in found:
        alike.setdefault(_same(one), []).append(one)
    groups: dict[_Key, list[_Compared]] = {}
    for boards in alike.values():
        for one in _agreed(boards):
            key = (*_quantity(one), "more" if one.log > 0 else "less")
            groups.setdefault(key, []).append(one)
    return list(groups.values())


def _agreed(boards: Sequence[_Compared]) -> list[_Compared]:
    """Return the boards on which a figure is another one, where most of them went that way."""
    apart = max(one.apart for one in boards)
    moved = [one for one in boards if _is_otherwise(one, apart)]
    ways = ([one for one in moved if one.log > 0], [one for one in moved if one.log < 0])
    return next((way for way in ways if 2 * len(way) > len(boards)), [])


def _same(one: _Compared) -> _Key:
    """Return what the boards of a kind share that measured the same."""
    key = one.series.key
    return key.product, key.rack, key.kind, key.profile, key.case_id, key.metric


def _quantity(one: _Compared) -> _Key:
    key = one.series.key
    return key.product, key.rack, key.profile, key.bench, metric_words(key.metric).quantity


def _is_otherwise(one: _Compared, apart: float) -> bool:
    if one.few_units:
        return False
    if one.log * one.nearest > 0 and abs(one.nearest) > BEYOND:
        return True
    return one.before > 1 and abs(one.log) > max(REACH * apart, LEAST)


def _rank(group: Sequence[_Compared]) -> tuple[object, ...]:
    blocking = any(one.column["blocking"] for one in group)
    return not blocking, not group[0].worse, -abs(_leading(group)[1]), group[0].place


def _leading(group: Sequence[_Compared]) -> tuple[_Compared, float]:
    """Return the series to show and the logarithm to quote: the middle of the statistic that leads."""
    stat = next((stat for stat in _LEADING if any(one.stat == stat for one in group)), group[0].stat)
    own = [one for one in group if one.stat == stat]
    middle = statistics.median_low([one.log for one in own])
    return next(one for one in own if one.log == middle), middle


def _json(group: Sequence[_Compared], found: Sequence[_Compared]) -> dict[str, Any]:
    shown, log = _leading(group)
    return {"series": shown.place, "change": tidy(math.exp(log)), "words": _words(group, shown, log, found)}


def _words(group: Sequence[_Compared], shown: _Compared, log: float, found: Sequence[_Compared]) -> str:
    """Return "publish latency p95 4.0 times the run before (p50, p99 too), on 4 boards"."""
    moved = {one.stat for one in group} - {shown.stat, ""}
    others = ", ".join(stat for stat in STATISTICS if stat in moved)
    size = _size(shown, log, "the run before" if shown.before == 1 else "the runs before")
    parts = [f"{metric_words(shown.series.key.metric)}{_case(group, found)} {size}"]
    parts += [" beside the reference"] if shown.beside else []
    return f"{''.join(parts)}{f' ({others} too)' if others else ''}, on {_where(group)}"


def _size(shown: _Compared, log: float, than: str) -> str:
    least = "at least " if shown.at_least else ""
    if log >= _TWICE:
        return f"{least}{math.exp(log):,.1f} times {than}"
    direction: Literal["lower", "higher"] = "higher" if shown.column["direction"] == "higher" else "lower"
    word = change_word(shown.series.key.metric, direction, log)
    return f"{least}{percent(math.expm1(log))} {word} than {than}"


def _case(group: Sequence[_Compared], found: Sequence[_Compared]) -> str:
    """Name the case where others of the bench measured the same quantity and did not move alike."""
    own = {one.series.key.case_id for one in group}
    there = {one.series.key.case_id for one in found if _quantity(one) == _quantity(group[0])}
    if own == there:
        return ""
    return f" of {group[0].column['label']}" if len(own) == 1 else f" in {len(own)} of {len(there)} cases"


def _where(group: Sequence[_Compared]) -> str:
    """Return "4 boards", or the one board's name; no figure that is not a chip's without that word."""
    kinds = {one.series.key.board: one.series.key.kind for one in group}
    noise = " (simulated noise)" if any(one.series.noise for one in group) else ""
    if len(kinds) == 1:
        ((board, kind),) = kinds.items()
        return f"{board}{f' ({kind})' if kind != 'physical' else ''}{noise}"
    unreal = sorted({kind for kind in kinds.values() if kind in UNREAL})
    if len(set(kinds.values())) == 1:
        return f"{len(kinds)} {''.join(f'{kind} ' for kind in unreal)}boards{noise}"
    counts = ", ".join(f"{sum(one == kind for one in kinds.values())} {kind}" for kind in unreal)
    return f"{len(kinds)} boards ({counts}){noise}"
