# SPDX-License-Identifier: Apache-2.0
"""The value of a metric in the rows of records, without an interval.

The columns of a record as a metric sees them: without the warm-up, and only the rows that it is for.

Void rows are in no metric: while they were measured the host under a virtual board was late, by a witness
that no task of the firmware can delay. They are no timeouts, so they do not count as slow either.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hil.base.errors import ConfigError
from hil.base.units import convert, unit_of
from hil.metrics import stats
from hil.metrics.metric import CURRENT, DEVICE, METER, QUANTILES, Metric
from hil.model import RunRecord

HOST_LATE_COLUMN = "host_late_us"


@dataclass(frozen=True)
class Voids:
    """How many of a metric's ``of`` measured rows are void.

    ``host_late_us`` is the worst that the host was late in them.
    """

    rows: int = 0
    of: int = 0
    host_late_us: int = 0

    @property
    def ratio(self) -> float:
        return self.rows / self.of if self.of else 0.0


def count_voids(metric: Metric, records: Sequence[RunRecord]) -> Voids:
    """Count the void rows of a metric over all boots. Raises ConfigError as column_of() does."""
    if metric.outcome is None or metric.outcome.void is None:
        return Voids(of=sum(len(_chosen_rows(metric, record)) for record in records))
    found = [(record, void_rows(metric, record)) for record in records]
    late_us = [record.columns[HOST_LATE_COLUMN][row] for record, rows in found for row in rows]
    of = sum(len(_chosen_rows(metric, record)) for record in records)
    return Voids(sum(len(rows) for _, rows in found), of, max(late_us, default=0))


def its_rows(metric: Metric, record: RunRecord) -> RunRecord:
    """Return the record with the measured rows that the metric is for, without those that are void.

    A row that stands for several samples is there as often. A meter's figure is one row, or none without it.
    """
    if metric.is_metered:
        return replace(record, columns=_meter_row(metric, record), warmup_rows=0)
    void = set(void_rows(metric, record))
    if not (metric.rows or void or metric.weight):
        return record
    kept = [row for row in _chosen_rows(metric, record) if row not in void]
    columns = {name: tuple(column[row] for row in kept) for name, column in record.columns.items()}
    if metric.weight:
        columns[metric.weight] = (1,) * len(kept)
    return replace(record, columns=columns, warmup_rows=0)


def _meter_row(metric: Metric, record: RunRecord) -> dict[str, tuple[int, ...]]:
    seen = record.environment.get(CURRENT, {}) if metric.is_in(record) else {}
    figures = {term.column: seen.get(term.column.removeprefix(METER)) for term in metric.terms}
    return {name: (value,) if isinstance(value, int) else () for name, value in figures.items()}


def void_rows(metric: Metric, record: RunRecord) -> list[int]:
    """Return which of the metric's rows are void, the record's first row being 0."""
    if metric.outcome is None or metric.outcome.void is None:
        return []
    outcomes = column_of(metric, record, metric.outcome.column)
    column_of(metric, record, HOST_LATE_COLUMN)  # without it "void" would be a way to hide failures
    chosen = _chosen_rows(metric, record)
    return [row for row in chosen if outcomes[row - record.warmup_rows] == metric.outcome.void]


def _chosen_rows(metric: Metric, record: RunRecord) -> Sequence[int]:
    if not (metric.rows or metric.weight):
        return range(record.warmup_rows, record.rows)
    wanted = [(column_of(metric, record, name), value) for name, value in metric.rows.items()]
    samples = column_of(metric, record, metric.weight) if metric.weight else (1,) * record.measured_rows
    return [
        record.warmup_rows + row
        for row in range(record.measured_rows)
        if all(column[row] == value for column, value in wanted)
        for _ in range(samples[row])
    ]


def column_of(metric: Metric, record: RunRecord, name: str) -> tuple[int, ...]:
    """Return a column without the warm-up rows; a figure of the device stands in each row."""
    if name.startswith(DEVICE):
        return (_device_figure(metric, record, name.removeprefix(DEVICE)),) * record.measured_rows
    if name not in record.columns:
        raise ConfigError(
            f"{metric.source}: metric {metric.name!r} needs the column {name!r}, which {record.case_id} on "
            f"{record.board} did not send; it sent {', '.join(record.columns)}.",
            next_step=f"correct 'of' (or 'void', which needs {HOST_LATE_COLUMN}), "
            "or build the firmware of this checkout.",
        )
    return record.columns[name][record.warmup_rows :]


def _device_figure(metric: Metric, record: RunRecord, key: str) -> int:
    value = record.environment.get("device", {}).get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(
            f"{metric.source}: metric {metric.name!r} needs the whole number {key!r} of the board's "
            f"environment, where {record.case_id} on {record.board} has {value!r}.",
            next_step="correct 'of', or build the firmware of this checkout.",
        )
    return value


def can_be_read(metric: Metric, record: RunRecord) -> bool:
    """Return whether a record has all columns of a metric; the bench of another commit may lack some."""
    outcome = metric.outcome
    names = [term.column for term in metric.terms if not term.is_metered]
    names += [*metric.rows, *filter(None, (metric.per, metric.weight))]
    names += [outcome.column] if outcome else []
    names += [HOST_LATE_COLUMN] if outcome and outcome.void is not None else []
    try:
        for name in names:
            column_of(metric, record, name)
        ceiling_of(metric, [record])
    except ConfigError:
        return False
    return True


_EXTREMES: dict[str, Callable[[Sequence[float]], float]] = {"min": min, "max": max}


def row_values(metric: Metric, record: RunRecord) -> list[float]:
    """Return one value a measured row in the metric's unit.

    A row that was not done is +inf, or left out if the metric says so; where higher is better it is 0, for
    nothing got through.
    """
    record = its_rows(metric, record)
    sums = _sums(metric, record)
    times, divisor = metric.factor
    failed = failed_rows(metric, record)
    worst = math.inf if metric.direction == "lower" else 0.0
    if not any(failed):
        return [total * times / divisor for total in sums]
    return [
        worst if lost else total * times / divisor
        for lost, total in zip(failed, sums, strict=True)
        if not (lost and metric.not_ok == "left-out")
    ]


def _sums(metric: Metric, record: RunRecord) -> Sequence[int]:
    """Return the sum of the metric's columns in each row, each with its sign."""
    sums: Sequence[int] = ()
    for term in metric.terms:
        column = column_of(metric, record, term.column)
        column = column if term.sign > 0 else tuple(map(operator.neg, column))
        sums = tuple(map(operator.add, sums, column)) if sums else column
    return sums


def failed_rows(metric: Metric, record: RunRecord) -> list[bool]:
    """Return for each measured row of the record whether it was not done."""
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
        raise ConfigError(f"{metric.source}: {records[0].case_id} has no numeric timeout {name!r}.")
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
            f"{metric.source}: metric {metric.name!r}: {term.column} is {seen} in total, which is "
            f"not a share of the {of} of {metric.per} ({records[0].case_id} on {records[0].board}).",
            next_step="correct 'of' and 'per'.",
        )
    return hits, trials
