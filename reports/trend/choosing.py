# SPDX-License-Identifier: Apache-2.0
"""Which series, which details and how many samples a trend holds: it must open also for 10,000 cases.

Fewer samples for a chart: the shape stays, and with it every extreme; failures are told apart.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hil.base.numeric import np
from hil.reports.allure.samples import Samples
from hil.reports.trend.naming import tidy_all
from hil.reports.trend.points import Series
from hil.reports.trend.runs import Run

MOST_SAMPLES = 600


def samples_json(samples: Samples, *, most: int = MOST_SAMPLES) -> dict[str, Any] | None:
    """Return the samples behind a chart, at most ``most`` done and as many failed; warm-up is left out.

    None where nothing tells when each was: those that the board only counted, or a bench without times.
    ``of`` is how many there are in all, the failed ones among them.
    """
    if not (samples.ordered and samples.timed):
        return None
    counted = [(boot, row) for boot, rows in samples.boots for row in rows if not row.warmup]
    done = [(boot, row) for boot, row in counted if not row.failed]
    failed = [row.at_s for _, row in counted if row.failed]
    kept = [done[n] for n in kept_of([row.value for _, row in done], most)]
    return {
        "boot": [boot for boot, _ in kept],
        "time_s": tidy_all(row.at_s for _, row in kept),
        "value": tidy_all(row.value for _, row in kept),
        "of": len(counted),
        "failed_time_s": tidy_all(_evenly(failed, most)),
    }


def kept_of(values: Sequence[float], most: int) -> list[int]:
    """Return the positions to keep, ascending: the smallest and the largest of each of most / 2 parts."""
    if len(values) <= most:
        return list(range(len(values)))
    array = np.asarray(values, dtype=float)
    edges = np.linspace(0, len(array), max(1, most // 2) + 1).astype(int)
    kept: set[int] = set()
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part = array[start:end]
        kept |= {start + int(part.argmin()), start + int(part.argmax())}
    return sorted(kept)


def _evenly(values: Sequence[float], most: int) -> list[float]:
    if len(values) <= most:
        return list(values)
    return [values[n] for n in np.linspace(0, len(values) - 1, most).astype(int).tolist()]


MOST_SERIES = 5_000  # a year of nights has 480; 10,000 cases have some 90,000
MOST_DETAILS = 1_000
ALL_SAMPLES = 200_000  # about 4 MB of text
_URGENCY = {"r": 0, "n": 1, "i": 2}


def choose_series(series: Sequence[Series], changed: Collection[str]) -> tuple[list[Series], str]:
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
    show, ``samples`` is how many samples each may have, ``left_out`` how many charts have no detail."""

    charts: Mapping[int, Sequence[tuple[str, str, str]]]
    samples: int
    left_out: int


def choose(series: Sequence[Series], columns: Sequence[Mapping[str, Any]], runs: Sequence[Run]) -> Choice:
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
    samples = max(2, min(MOST_SAMPLES, ALL_SAMPLES // max(1, len(chosen))))
    return Choice(charts, samples, len(current) - len(chosen))


def _key(chart: tuple[int, str, str, str], runs: Sequence[Run]) -> str:
    run, board, case_id, quantity = chart
    return f"{runs[run].place}/{board}/{case_id}/{quantity}"
