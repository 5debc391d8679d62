# SPDX-License-Identifier: Apache-2.0
"""Metrics: one number, with its interval, from the columns of the records of one case on one board.

``of`` is a column or a sum or difference of columns (``done_us - planned_us``). A row whose outcome is not
ok was never done: it counts as slower than everything seen, and is never dropped (coordinated omission).
Where a statistic falls among such rows it reads "at least the timeout". Only what says nothing of whether a
row was done, such as the time to serialise it, may leave such rows out. Warm-up rows are always left out.

Rows that follow one another depend on one another. Where the columns say when each was done, intervals count
episodes rather than rows (see hil.metrics.stats.design_effect).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hil.base.numeric import np
from hil.base.units import convert, find_unit
from hil.metrics import stats
from hil.metrics.metric import QUANTILES, Metric
from hil.metrics.values import (
    ceiling_of,
    column_of,
    failed_rows,
    hits_and_trials,
    its_rows,
    row_values,
    statistic_of,
)
from hil.model import RunRecord

_PLANNED, _DONE = "planned_us", "done_us"
_BETWEEN_BOOTS_US = 1 << 40  # further apart than any two rows of a boot, whose times have 32 bits


@dataclass(frozen=True)
class Estimate:
    """A value in the metric's unit with its interval.

    ``at_least`` says that the value is only known to be that large (it fell among timeouts);
    ``low`` is -inf and ``high`` +inf where there is no bound. Of a share, ``samples`` are its trials,
    ``failed`` its hits, and ``effect`` the design effect that its interval takes into account. ``needed`` is
    how many samples bound a quantile from both sides, where these are fewer; else 0.
    """

    value: float
    low: float
    high: float
    samples: int
    failed: int
    at_least: bool = False
    effect: float = 1.0
    needed: int = 0


def estimate(
    metric: Metric, records: Sequence[RunRecord], *, alpha: float | None, seed_text: str = ""
) -> Estimate:
    """Compute ``metric`` over the records of one case on one board (one a boot).

    Each bound of the interval is wrong with probability at most ``alpha``; without it bounds are NaN, for
    they take a hundred times as long as the value.

    Raises:
        ConfigError: a record lacks a column that the metric names.
    """
    records = [its_rows(metric, record) for record in records]
    if metric.statistic == "share":
        return _share(metric, records, alpha)
    lost = [failed for record in records for failed in failed_rows(metric, record)]
    failed, done_us = lost.count(True), _row_done_us(metric, records)
    if metric.statistic == "ratio":
        effect = 1.0 if alpha is None else stats.design_effect(np.array(lost), done_us)
        return _part_of_all(metric, failed, len(lost), alpha, effect=effect)
    values = [value for record in records for value in row_values(metric, record)]
    ceiling = ceiling_of(metric, records)
    if done_us is not None and metric.not_ok == "left-out":
        done_us = [time for time, failed_row in zip(done_us, lost, strict=True) if not failed_row]
    value = statistic_of(metric, values, ceiling)
    at_least = math.isinf(value) or (metric.averages and _tail_failed(metric.statistic, values))
    if alpha is None:
        return Estimate(min(value, ceiling), math.nan, math.nan, len(values), failed, at_least)
    bounds = _bounds(metric, values, ceiling, alpha, seed_text, done_us)
    low = min(bounds.low, ceiling) if math.isinf(bounds.low) and bounds.low > 0 else bounds.low
    high = math.inf if at_least else bounds.high
    needed = _needed(metric, len(values), alpha)
    return Estimate(min(value, ceiling), low, high, len(values), failed, at_least, needed=needed)


def _needed(metric: Metric, samples: int, alpha: float) -> int:
    if metric.statistic not in QUANTILES:
        return 0
    needed = stats.fewest_samples(QUANTILES[metric.statistic], alpha)
    return needed if samples < needed else 0


def _share(metric: Metric, records: Sequence[RunRecord], alpha: float | None) -> Estimate:
    """Compute a share of sums over all rows of all boots."""
    hits, trials = hits_and_trials(metric, records)
    effect = 1.0 if alpha is None else stats.overdispersion(hits, trials)
    return _part_of_all(metric, sum(hits), sum(trials), alpha, effect=effect)


def _part_of_all(metric: Metric, hits: int, trials: int, alpha: float | None, *, effect: float) -> Estimate:
    unknown = stats.Interval(math.nan, math.nan)
    bounds = unknown if alpha is None else stats.ratio_interval(hits, trials, alpha, effect)
    value, low, high = (
        convert(share, find_unit("ratio"), metric.unit) for share in (hits / trials, bounds.low, bounds.high)
    )
    return Estimate(value, low, high, trials, hits, effect=effect)


def count_samples(metric: Metric, records: Sequence[RunRecord]) -> int:
    """Return how many rows enter the metric; of a share, how many trials."""
    records = [its_rows(metric, record) for record in records]
    if metric.statistic == "share":
        return sum(sum(column_of(metric, record, metric.per)) for record in records)
    rows = sum(record.measured_rows for record in records)
    if metric.not_ok == "infinite" or metric.statistic == "ratio":
        return rows
    return rows - sum(failed_rows(metric, record).count(True) for record in records)


def _row_done_us(metric: Metric, records: Sequence[RunRecord]) -> list[int] | None:
    """Return when each row was done (planned, where it never was); None where a record does not say.

    Boots lie so far apart that no episode reaches from one into the next.
    """
    if not all({_PLANNED, _DONE} <= set(record.columns) for record in records):
        return None
    return [
        (planned if failed else done) + boot * _BETWEEN_BOOTS_US
        for boot, record in enumerate(records)
        for planned, done, failed in zip(
            column_of(metric, record, _PLANNED),
            column_of(metric, record, _DONE),
            failed_rows(metric, record),
            strict=True,
        )
    ]


def _bounds(
    metric: Metric,
    values: Sequence[float],
    ceiling: float,
    alpha: float,
    seed_text: str,
    done_us: Sequence[int] | None,
) -> stats.Interval:
    if metric.statistic in QUANTILES:
        return stats.quantile_interval(values, QUANTILES[metric.statistic], alpha, done_us)
    if metric.is_metered:  # a value a boot, of which no more is known than what the boots said
        return stats.Interval(min(values), max(values))
    if metric.statistic in ("min", "max"):
        return _bounds_of_extreme(metric, statistic_of(metric, values, ceiling))
    known = [min(value, ceiling) for value in values]
    if any(math.isinf(value) for value in known):
        return stats.Interval(-math.inf, math.inf)
    if metric.statistic == "tail5":
        return stats.tail5_interval(known, alpha, seed_text, done_us)
    if metric.statistic == "batch_mean":
        return stats.batch_mean_interval(known, alpha)
    return stats.mean_interval(known, alpha, seed_text)


def _bounds_of_extreme(metric: Metric, value: float) -> stats.Interval:
    """Bound the smallest or largest possible on one side by the smallest or largest value seen.

    An exact value is no estimate: it is its own interval.
    """
    if metric.exact:
        return stats.Interval(value, value)
    is_max = metric.statistic == "max"
    return stats.Interval(value if is_max else -math.inf, math.inf if is_max else value)


def _tail_failed(statistic: str, values: Sequence[float]) -> bool:
    """Return whether a row that was not done entered the mean, or the slowest 5 %."""
    counted = sorted(values)[-stats.tail_size(len(values)) :] if statistic == "tail5" else values
    return any(math.isinf(value) for value in counted)
