# SPDX-License-Identifier: Apache-2.0
"""What a chart shows: the samples behind a bench's metrics, in one unit, boot by boot."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hil.base.units import Unit, best_unit, convert, find_unit, format_value, unit_of
from hil.metrics import stats
from hil.metrics.metric import QUANTILES, Metric, Term, name_of, source_unit
from hil.metrics.values import count_voids, its_rows, row_values
from hil.model import RunRecord
from hil.reports.allure.story import Story
from hil.reports.svg import wants_log

CHARTS_MAX = 3
MARKED = {"lower": ("p50", "p95", "p99"), "higher": ("p5", "p50")}
MARK_SHARES = {**QUANTILES, "p5": 0.05}
_FEWEST = {"p5": 20, "p95": 20, "p99": 100}  # samples of which about one lies beyond
_JUDGED = ("batch_mean", "mean")
_PLANNED = "planned_us"


@dataclass(frozen=True)
class SampleRow:
    """One sample; ``at_s`` is when, since the start of the case, and ``value`` is NaN where there is none."""

    at_s: float
    value: float
    failed: bool
    warmup: bool


@dataclass(frozen=True)
class NumberMark:
    """A number with its name: ``p95`` at 7.73, or ``p95 limit`` at 25."""

    name: str
    value: float
    text: str


@dataclass(frozen=True)
class CaseSamples:
    """One quantity of one case on one board, all values in ``unit``.

    ``beyond`` are the quantiles that fall among what failed; ``timed`` says that it is known when each began.
    ``clock`` is what the values were taken by; ``void`` rows are left out. Samples that the board only
    counted are not ``ordered`` in time.
    """

    title: str
    quantity: str
    formula: str
    unit: Unit
    boots: tuple[tuple[int, tuple[SampleRow, ...]], ...]
    statistics: tuple[NumberMark, ...]
    limits: tuple[NumberMark, ...]
    beyond: tuple[str, ...]
    log: bool
    timed: bool
    clock: str = ""
    void: int = 0
    ordered: bool = True

    @property
    def values(self) -> list[float]:
        """Every measured value, the warm-up left out, and what failed."""
        return [row.value for _, boot in self.boots for row in boot if not (row.warmup or row.failed)]

    @property
    def counted(self) -> int:
        """How many rows count, the failed ones among them."""
        return sum(not row.warmup for _, boot in self.boots for row in boot)

    @property
    def failed(self) -> int:
        return sum(row.failed and not row.warmup for _, boot in self.boots for row in boot)

    @property
    def axis_label(self) -> str:
        return f"{self.quantity} ({self.unit.symbol})" if self.unit.symbol else self.quantity


def samples_of(story: Story) -> list[CaseSamples]:
    """Return what to chart: the quantities that are limited or may block; else the first that there is."""
    if story.thresholds is None or not story.records:
        return []
    groups: dict[tuple[Term, ...], list[Metric]] = {}
    for metric in story.thresholds.metrics_of(story.records[0].parameters):
        if metric.statistic not in ("ratio", "share") and _has_columns(metric, story.records):
            groups.setdefault(metric.terms, []).append(metric)
    decided = {item.metric for item in story.series if item.blocking or item.limit is not None}
    chosen = [group for group in groups.values() if any(metric.name in decided for metric in group)]
    found = [_samples(story, group) for group in (chosen or list(groups.values())[:1])[:CHARTS_MAX]]
    return [each for each in found if each is not None]


def _has_columns(metric: Metric, records: Iterable[RunRecord]) -> bool:
    wanted = {term.column for term in metric.terms}
    wanted |= {metric.outcome.column} if metric.outcome else set()
    return all(wanted <= set(record.columns) for record in records)


def _samples(story: Story, metrics: Sequence[Metric]) -> CaseSamples | None:
    metric = metrics[0]
    measured = [value for record in story.records for value in row_values(metric, record)]
    finite = [value for value in measured if math.isfinite(value)]
    if not finite:
        return None
    shown = best_unit(statistics.median(finite), metric.unit)
    names = {each.name: each.statistic for each in metrics}
    found = _statistics(story, metric, names, measured)
    clock = _clock_column(metric, story.records)
    limits = _limits(story, names, metric.unit, shown)
    counted = [its_rows(metric, record) if metric.weight else record for record in story.records]
    boots = tuple((record.boot_index, _rows(metric, record, clock, shown)) for record in counted)
    spread = [convert(value, metric.unit, shown) for value in finite] + [mark.value for mark in limits]
    return CaseSamples(
        title=f"{quantity_of(metric)} of {story.title}",
        quantity=quantity_of(metric),
        formula=_formula(metric.terms),
        unit=shown,
        boots=boots,
        statistics=tuple(
            NumberMark(name, convert(value, metric.unit, shown), f"{name} {format_value(value, metric.unit)}")
            for name, value in found.items()
            if math.isfinite(value)
        ),
        limits=limits,
        beyond=tuple(name for name, value in found.items() if math.isinf(value)),
        log=metric.scale == "log" and wants_log(spread),
        timed=bool(clock),
        clock=metric.clock,
        void=count_voids(metric, story.records).rows,
        ordered=not metric.weight,
    )


def _statistics(
    story: Story, metric: Metric, names: dict[str, str], measured: Sequence[float]
) -> dict[str, float]:
    """Return what to mark in the metric's unit: the verdict's own figures; +inf where they are unknown.

    The quantiles towards the worse end that so many samples give, and a mean where the verdict judges one.
    """
    marked = [name for name in MARKED[metric.direction] if len(measured) >= _FEWEST.get(name, 1)]
    found = {name: stats.quantile(measured, MARK_SHARES[name]) for name in marked}
    for item in story.series:
        name = names.get(item.metric, "")
        if (name in found or name in _JUDGED) and item.value is not None:
            own = convert(item.value, find_unit(item.unit), metric.unit)
            found[name] = math.inf if item.at_least else own
    return found


def _limits(story: Story, names: dict[str, str], unit: Unit, shown: Unit) -> tuple[NumberMark, ...]:
    """Return one mark for each limit, with the names of all statistics that it is for."""
    groups: dict[tuple[float, str], list[str]] = {}
    for item in story.series:
        if item.metric in names and item.limit is not None:
            limit = convert(item.limit, find_unit(item.unit), unit)
            advice = "" if item.blocking else " (advice)"
            groups.setdefault((limit, advice), []).append(names[item.metric])
    return tuple(
        NumberMark(
            f"{', '.join(which)} limit",
            convert(limit, unit, shown),
            f"{', '.join(which)} limit {format_value(limit, unit)}{advice}",
        )
        for (limit, advice), which in sorted(groups.items())
    )


def _rows(metric: Metric, record: RunRecord, clock: str, shown: Unit) -> tuple[SampleRow, ...]:
    unit = source_unit(metric.terms)
    columns = [(term.sign, record.columns[term.column]) for term in metric.terms]
    times = record.columns.get(clock, range(record.rows))
    second = find_unit("s")
    outcomes = record.columns[metric.outcome.column] if metric.outcome else ()
    found = []
    for index in range(record.rows):
        if metric.outcome and outcomes[index] == metric.outcome.void:
            continue
        failed = bool(metric.outcome) and outcomes[index] != getattr(metric.outcome, "ok", 0)
        value = convert(sum(sign * column[index] for sign, column in columns), unit, shown)
        at_s = convert(times[index], unit_of(clock), second) if clock else float(index)
        found.append(SampleRow(at_s, math.nan if failed else value, failed, index < record.warmup_rows))
    return tuple(found)


def _clock_column(metric: Metric, records: Iterable[RunRecord]) -> str:
    """Return the column that says when a sample began: what the metric subtracts, or the plan; or ""."""
    subtracted = [term.column for term in metric.terms if term.sign < 0]
    for name in (*subtracted[:1], _PLANNED):
        if all(name in record.columns for record in records) and unit_of(name).dimension == "time":
            return name
    return ""


def quantity_of(metric: Metric) -> str:
    """Return the metric's name in words without statistic and unit: "publish latency"."""
    name = metric.name.removesuffix(f"_{metric.unit.name}").removesuffix(f"_{name_of(metric.statistic)}")
    return name.replace("_", " ")


def _formula(terms: Sequence[Term]) -> str:
    text = " ".join(f"{'+' if term.sign > 0 else '−'} {term.column}" for term in terms)
    return text.removeprefix("+ ")
