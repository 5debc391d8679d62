# SPDX-License-Identifier: Apache-2.0
"""Which series and which details a trend holds: it must open also for 10,000 cases."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hil.reports.trend.points import TrendSeries
from hil.reports.trend.runs import TrendRun

MOST_SERIES = 5_000  # a year of nights has 480; 10,000 cases have some 90,000
MOST_DETAILS = 1_000
_URGENCY = {"r": 0, "n": 1, "i": 2}


def choose_series(series: Sequence[TrendSeries], changed: Collection[str]) -> tuple[list[TrendSeries], str]:
    """Return at most MOST_SERIES, in their order, and what to say of those left out: "" where all are in.

    First come those of a change point (``changed`` are their ids), then by what the gate says of their newest
    point, those with a limit before those without.
    """
    if len(series) <= MOST_SERIES:
        return list(series), ""

    def rank(number: int) -> tuple[bool, int, bool, int]:
        one = series[number]
        newest = one.points[-1]
        return (
            one.key.series_id not in changed,
            _URGENCY.get(newest.outcome, 3),
            newest.limit is None,
            number,
        )

    kept = sorted(sorted(range(len(series)), key=rank)[:MOST_SERIES])
    left_out = len(series) - len(kept)
    note = (
        f"{left_out} of {len(series)} series are left out here, those without a change, a broken limit or a "
        "limit first; their figures are in the test report and in each run's series.csv."
    )
    return [series[number] for number in kept], note


@dataclass(frozen=True)
class Choice:
    """``charts`` maps a run's position to the charts (board, case id, quantity) that it is the newest to
    show, ``left_out`` is how many charts have no detail."""

    charts: Mapping[int, Sequence[tuple[str, str, str]]]
    left_out: int


def choose(
    series: Sequence[TrendSeries], columns: Sequence[Mapping[str, Any]], runs: Sequence[TrendRun]
) -> Choice:
    """Choose what broke or changed before what is merely there."""
    ranks: dict[tuple[int, str, str, str], tuple[int, int]] = {}
    newest: dict[str, int] = {}
    for one, column in zip(series, columns, strict=True):
        if column["now"] is None:
            continue
        point = one.points[column["now"]]
        chart = (point.run, one.key.board, one.key.case_id, column["quantity"])
        own = (_URGENCY.get(point.outcome, 3), 0 if column["changes"] else 1)
        ranks[chart] = min(own, ranks.get(chart, own))
        newest[one.key.chart] = max(point.run, newest.get(one.key.chart, -1))
    current = [chart for chart in ranks if newest[_key(chart, runs)] == chart[0]]
    chosen = sorted(sorted(current), key=lambda chart: ranks[chart])[:MOST_DETAILS]
    charts: dict[int, list[tuple[str, str, str]]] = {}
    for run, board, case_id, quantity in chosen:
        charts.setdefault(run, []).append((board, case_id, quantity))
    return Choice(charts, len(current) - len(chosen))


def _key(chart: tuple[int, str, str, str], runs: Sequence[TrendRun]) -> str:
    run, board, case_id, quantity = chart
    return f"{runs[run].place}/{board}/{case_id}/{quantity}"
