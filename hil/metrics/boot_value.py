# SPDX-License-Identifier: Apache-2.0
"""One boot's value of a metric: what is compared between boots, and what the history keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hil.base.units import convert, find_unit
from hil.metrics import stats
from hil.metrics.metric import Metric, source_unit
from hil.metrics.values import ceiling_of, failed_rows, hits_and_trials, its_rows, row_values, statistic_of
from hil.model import RunRecord

# The slowest that a chip's counter of cycles counts, for boards that do not say how fast theirs does.
_LEAST_MHZ = 80.0
_ONE_US_CLOCKS = ("esp_timer", "gptimer")
_CYCLE_CLOCKS = ("cycle_counter", "cycle_counter_corrected")


@dataclass(frozen=True)
class BootValue:
    """``value`` is in the metric's unit, +inf where it fell among timeouts (more than 5 % for p95 and tail5).

    ``samples`` rows are behind it, of which ``hits`` failed (of a share: trials and hits). ``quantum`` is the
    resolution of its clock in the metric's unit, 0 where it has none.
    """

    value: float
    samples: int
    hits: int = 0
    quantum: float = 0.0


def boot_value(metric: Metric, record: RunRecord) -> BootValue | None:
    """Return the metric's value in one boot; None where nothing counts (no row, or all of them void).

    A quantile or an extreme is +inf where it touches a row that was not done, an average where it is of such
    rows alone; less of them enter an average with the timeout. The value is that of
    hil.metrics.evaluation.estimate() of this record alone, which says "at least the timeout" of +inf.

    Raises ConfigError where a column that the metric needs is absent.
    """
    kept = its_rows(metric, record)
    if metric.statistic == "share":
        hits, trials = hits_and_trials(metric, [kept])
        return _part(metric, sum(hits), sum(trials))
    failed = failed_rows(metric, kept)
    if metric.statistic == "ratio":
        return _part(metric, sum(failed), len(failed))
    values = row_values(metric, record)
    if not values:
        return None
    lost = sum(failed) if metric.not_ok != "left-out" else 0
    value = statistic_of(metric, values, ceiling_of(metric, [kept]))
    if metric.averages and _all_failed(metric, values):
        value = math.inf
    samples = record.measured_rows if metric.is_metered else len(values)  # it is what all of them drew
    return BootValue(value, samples, lost, quantum_of(metric, record))


def quantum_of(metric: Metric, record: RunRecord) -> float:
    """Return the step in which the metric's rows are read, in its unit; 0 of a count and of a fact.

    It is the unit of the columns, which hold integers, or the tick of the clock where that is coarser.
    """
    if metric.exact or metric.scale == "count":
        return 0.0
    source = source_unit(metric.terms)
    step = convert(1.0, source, metric.unit)
    if source.dimension != "time":
        return step
    ticks_us = [_tick_us(clock, record) for clock in metric.clocks or (record.clock,)]
    return max([step, *(convert(tick, find_unit("us"), metric.unit) for tick in ticks_us)])


def _part(metric: Metric, hits: int, trials: int) -> BootValue | None:
    if not trials:
        return None
    return BootValue(convert(hits / trials, find_unit("ratio"), metric.unit), trials, hits)


def _all_failed(metric: Metric, values: list[float]) -> bool:
    """Return whether the rows that an average is of, all or the slowest 5 %, were all not done."""
    size = stats.tail_size(len(values)) if metric.statistic == "tail5" else len(values)
    return all(math.isinf(value) for value in sorted(values)[-size:])


def _tick_us(clock: str, record: RunRecord) -> float:
    if clock in _ONE_US_CLOCKS:
        return 1.0
    if clock in _CYCLE_CLOCKS:
        mhz = record.environment.get("device", {}).get("cpu_mhz")
        return 1.0 / (mhz if isinstance(mhz, int | float) and mhz > 0 else _LEAST_MHZ)
    return 0.0
