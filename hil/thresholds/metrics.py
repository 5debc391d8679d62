"""Metrics: one number, with its interval, from the columns of the records of one case on one board.

``of`` is a column or a sum or difference of columns (``done_us - planned_us``). A row whose outcome is not
ok was never done: it counts as slower than everything seen, and is never dropped (coordinated omission).
Where a statistic falls among such rows it reads "at least the timeout". Only what says nothing of whether a
row was done, such as the time to serialise it, may leave such rows out. Warm-up rows are always left out.

Rows that follow one another depend on one another. Where the columns say when each was done, intervals count
episodes rather than rows (see hil.stats.design_effect).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hil import stats
from hil.errors import ConfigError
from hil.model import RunRecord
from hil.units import QuantityError, Unit, convert, find_unit, unit_of

QUANTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}
STATISTICS = (*QUANTILES, "tail5", "mean", "max", "ratio")
SCALES = ("log", "identity", "count", "exact")
DIRECTIONS = ("lower", "higher")
NOT_OK = ("infinite", "left-out")

_PLANNED, _DONE = "planned_us", "done_us"
_BETWEEN_BOOTS_US = 1 << 40  # further apart than any two rows of a boot, whose times have 32 bits
_TERM = re.compile(r"\s*([+-])\s*([a-z][a-z0-9_]*)")


@dataclass(frozen=True)
class OutcomeRule:
    """Which rows succeeded: ``column`` equals ``ok``; others were given up after ``timeout_parameter``."""

    column: str
    ok: int
    timeout_parameter: str


@dataclass(frozen=True)
class Term:
    sign: int
    column: str


@dataclass(frozen=True)
class Metric:
    """What to compute. ``source`` is file:line; ``unit`` is the one that ``name`` ends with."""

    name: str
    terms: tuple[Term, ...]
    statistic: str
    scale: str
    direction: Literal["lower", "higher"]
    blocking: bool
    unit: Unit
    not_ok: str
    outcome: OutcomeRule | None
    source: str

    @property
    def bootstrapped(self) -> bool:
        return self.statistic in ("mean", "tail5")


@dataclass(frozen=True)
class Estimate:
    """A value in the metric's unit with its interval.

    ``at_least`` says that the value is only known to be that large (it fell among timeouts);
    ``low`` is -inf and ``high`` +inf where there is no bound.
    """

    value: float
    low: float
    high: float
    samples: int
    failed: int
    at_least: bool = False


def parse_terms(text: str) -> tuple[Term, ...]:
    """Read ``done_us - planned_us``. Raises ValueError."""
    rest = text.strip()
    rest = rest if rest.startswith(("+", "-")) else f"+{rest}"
    terms = []
    while rest:
        match = _TERM.match(rest)
        if match is None:
            raise ValueError(f"{text!r} is not a column, or columns joined by + and -")
        terms.append(Term(1 if match[1] == "+" else -1, match[2]))
        rest = rest[match.end() :].rstrip()
    return tuple(terms)


def source_unit(terms: Sequence[Term]) -> Unit:
    """Return the one unit of the columns. Raises QuantityError where they differ or have none."""
    units = {unit_of(term.column) for term in terms}
    if len(units) > 1:
        names = ", ".join(sorted(unit.name for unit in units))
        raise QuantityError(f"the columns have different units: {names}")
    return units.pop()


def estimate(metric: Metric, records: Sequence[RunRecord], *, alpha: float, seed_text: str) -> Estimate:
    """Compute ``metric`` over the records of one case on one board (one a boot).

    Each bound of the interval is wrong with probability at most ``alpha``.

    Raises:
        ConfigError: a record lacks a column that the metric names.
    """
    lost = [failed for record in records for failed in _failed_rows(metric, record)]
    failed, done_us = lost.count(True), _row_done_us(metric, records)
    if metric.statistic == "ratio":
        samples = len(lost)
        bounds = stats.ratio_interval(failed, samples, alpha, stats.design_effect(np.array(lost), done_us))
        value, low, high = (
            convert(share, find_unit("ratio"), metric.unit)
            for share in (failed / samples, bounds.low, bounds.high)
        )
        return Estimate(value, low, high, samples, failed)
    values = [value for record in records for value in row_values(metric, record)]
    ceiling = _ceiling(metric, records)
    if done_us is not None and metric.not_ok == "left-out":
        done_us = [time for time, failed_row in zip(done_us, lost, strict=True) if not failed_row]
    value, bounds = _value_and_bounds(metric.statistic, values, ceiling, alpha, seed_text, done_us)
    at_least = math.isinf(value) or (metric.bootstrapped and _tail_failed(metric.statistic, values))
    low = min(bounds.low, ceiling) if math.isinf(bounds.low) and bounds.low > 0 else bounds.low
    high = math.inf if at_least else bounds.high
    return Estimate(min(value, ceiling), low, high, len(values), failed, at_least)


def row_values(metric: Metric, record: RunRecord) -> list[float]:
    """Return one value a measured row in the metric's unit.

    A row that was not done is +inf, or left out if the metric says so; where higher is better it is 0, for
    nothing got through.
    """
    columns = [(term.sign, _column(metric, record, term.column)) for term in metric.terms]
    unit = source_unit(metric.terms)
    failed = _failed_rows(metric, record)
    worst = math.inf if metric.direction == "lower" else 0.0
    sums = (sum(sign * column[row] for sign, column in columns) for row in range(len(failed)))
    return [
        worst if lost else convert(total, unit, metric.unit)
        for lost, total in zip(failed, sums, strict=True)
        if not (lost and metric.not_ok == "left-out")
    ]


def count_samples(metric: Metric, records: Sequence[RunRecord]) -> int:
    """Return how many rows enter the metric."""
    rows = sum(record.measured_rows for record in records)
    if metric.not_ok == "infinite" or metric.statistic == "ratio":
        return rows
    return rows - sum(_failed_rows(metric, record).count(True) for record in records)


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
            _column(metric, record, _PLANNED),
            _column(metric, record, _DONE),
            _failed_rows(metric, record),
            strict=True,
        )
    ]


def _failed_rows(metric: Metric, record: RunRecord) -> list[bool]:
    if metric.outcome is None:
        return [False] * record.measured_rows
    ok = metric.outcome.ok
    return [outcome != ok for outcome in _column(metric, record, metric.outcome.column)]


def _column(metric: Metric, record: RunRecord, name: str) -> tuple[int, ...]:
    """Return a column without the warm-up rows."""
    if name not in record.columns:
        raise ConfigError(
            f"{metric.source}: metric {metric.name!r} needs the column {name!r}, which {record.case_id} on "
            f"{record.board} did not send; it sent {', '.join(record.columns)}.",
            next_step="correct 'of', or build the firmware of this checkout.",
        )
    return record.columns[name][record.warmup_rows :]


def _ceiling(metric: Metric, records: Sequence[RunRecord]) -> float:
    """Return the timeout in the metric's unit: what a row that was not done took at least."""
    if metric.outcome is None or metric.unit.dimension != "time":
        return math.inf
    name = metric.outcome.timeout_parameter
    timeouts = [record.parameters.get(name) for record in records]
    known = [float(timeout) for timeout in timeouts if isinstance(timeout, int | float)]
    if len(known) < len(timeouts):
        raise ConfigError(f"{metric.source}: {records[0].case_id} has no number for the timeout {name!r}.")
    return convert(min(known), unit_of(name), metric.unit)


def _value_and_bounds(
    statistic: str,
    values: Sequence[float],
    ceiling: float,
    alpha: float,
    seed_text: str,
    done_us: Sequence[int] | None,
) -> tuple[float, stats.Interval]:
    if statistic in QUANTILES:
        share = QUANTILES[statistic]
        return stats.quantile(values, share), stats.quantile_interval(values, share, alpha, done_us)
    if statistic == "max":
        # The largest value seen bounds the largest possible one from below, whatever alpha.
        return max(values), stats.Interval(max(values), math.inf)
    known = [min(value, ceiling) for value in values]
    if any(math.isinf(value) for value in known):
        return math.inf, stats.Interval(-math.inf, math.inf)
    if statistic == "tail5":
        return stats.tail5(known), stats.tail5_interval(known, alpha, seed_text, done_us)
    return stats.mean(known), stats.mean_interval(known, alpha, seed_text)


def _tail_failed(statistic: str, values: Sequence[float]) -> bool:
    """Say whether a row that was not done entered the mean, or the slowest 5 %."""
    counted = sorted(values)[-stats.tail_size(len(values)) :] if statistic == "tail5" else values
    return any(math.isinf(value) for value in counted)
