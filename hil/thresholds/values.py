"""The value of a metric in the rows of records, without an interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from hil import stats
from hil.errors import ConfigError
from hil.model import RunRecord
from hil.thresholds.columns import column_of, its_rows
from hil.thresholds.metric import QUANTILES, Metric, source_unit
from hil.units import conversion, convert, unit_of

_EXTREMES: dict[str, Callable[[Sequence[float]], float]] = {"min": min, "max": max}


def row_values(metric: Metric, record: RunRecord) -> list[float]:
    """Return one value a measured row in the metric's unit.

    A row that was not done is +inf, or left out if the metric says so; where higher is better it is 0, for
    nothing got through.
    """
    record = its_rows(metric, record)
    columns = [(term.sign, column_of(metric, record, term.column)) for term in metric.terms]
    times, divisor = conversion(source_unit(metric.terms), metric.unit)
    failed = failed_rows(metric, record)
    worst = math.inf if metric.direction == "lower" else 0.0
    sums = (sum(sign * column[row] for sign, column in columns) for row in range(len(failed)))
    return [
        worst if lost else total * times / divisor
        for lost, total in zip(failed, sums, strict=True)
        if not (lost and metric.not_ok == "left-out")
    ]


def failed_rows(metric: Metric, record: RunRecord) -> list[bool]:
    """Say of each measured row of the record whether it was not done."""
    if metric.outcome is None:
        return [False] * record.measured_rows
    ok = metric.outcome.ok
    return [outcome != ok for outcome in column_of(metric, record, metric.outcome.column)]


def ceiling_of(metric: Metric, records: Sequence[RunRecord]) -> float:
    """Return the timeout in the metric's unit: what a row that was not done took at least.

    +inf where there is none. Raises ConfigError where a case does not say it.
    """
    if metric.outcome is None or not metric.outcome.timeout_parameter or metric.unit.dimension != "time":
        return math.inf
    name = metric.outcome.timeout_parameter
    timeouts = [record.parameters.get(name) for record in records]
    known = [float(timeout) for timeout in timeouts if isinstance(timeout, int | float)]
    if len(known) < len(timeouts):
        raise ConfigError(f"{metric.source}: {records[0].case_id} has no number for the timeout {name!r}.")
    return convert(min(known), unit_of(name), metric.unit)


def statistic_of(metric: Metric, values: Sequence[float], ceiling: float) -> float:
    """Return the metric's statistic of its rows' values (not a ratio or share). Raises ValueError without.

    A quantile or an extreme that touches a row that was not done is +inf; in an average such a row counts
    with ``ceiling``.
    """
    if metric.statistic in QUANTILES:
        return stats.quantile(values, QUANTILES[metric.statistic])
    if metric.statistic in _EXTREMES:
        return _EXTREMES[metric.statistic](values)
    known = [min(value, ceiling) for value in values]
    if any(math.isinf(value) for value in known):
        return math.inf
    return stats.tail5(known) if metric.statistic == "tail5" else stats.mean(known)


def hits_and_trials(metric: Metric, records: Sequence[RunRecord]) -> tuple[list[int], list[int]]:
    """Return a share's hits and trials, one of each a row. Raises ConfigError where it is no share."""
    (term,) = metric.terms
    hits = [hit for record in records for hit in column_of(metric, record, term.column)]
    trials = [trial for record in records for trial in column_of(metric, record, metric.per)]
    seen, of = sum(hits), sum(trials)
    if seen > of:
        raise ConfigError(
            f"{metric.source}: metric {metric.name!r}: {term.column} is {seen} in all, which is no share "
            f"of the {of} of {metric.per} ({records[0].case_id} on {records[0].board}).",
            next_step="correct 'of' and 'per'.",
        )
    return hits, trials
