"""What stands behind a chart in a reported run: distribution, boots, samples, packets, files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hil.base.errors import ConfigError
from hil.base.units import Unit, convert
from hil.metrics.boot_value import boot_value
from hil.metrics.metric import Metric, name_of
from hil.model import RunRecord, SeriesVerdict
from hil.reports.allure.samples import Samples, samples_of
from hil.reports.allure.story import Story, read_thresholds
from hil.reports.trend.distribution import distribution
from hil.reports.trend.files import files_of
from hil.reports.trend.naming import label_of, split_metric
from hil.reports.trend.numbers import Number, tidy
from hil.reports.trend.runs import Reported
from hil.reports.trend.thinning import MOST_SAMPLES, samples_json
from hil.reports.trend.wire import wire_of
from hil.store import RunDirectory
from hil.thresholds import Thresholds

ROLES = ("base", "reference")  # what a candidate is set beside; the base where there are both

CaseKey = tuple[str, str]  # board, case id
Detail = dict[str, Any]


@dataclass(frozen=True)
class Wanted:
    """The details to make of one run: the quantities of each case. ``tests`` are ids of Allure's results, at
    most ``samples`` samples of each chart are kept."""

    run: Reported
    number: int
    quantities: Mapping[CaseKey, Collection[str]]
    tests: Mapping[CaseKey, str]
    samples: int = MOST_SAMPLES


def details_of(wanted: Wanted) -> dict[tuple[CaseKey, str], Detail]:
    """Return the details by case and quantity. Raises ConfigError: journal or thresholds are damaged."""
    if not wanted.quantities:
        return {}
    run = wanted.run
    thresholds = read_thresholds(run.path, run.info)
    cases = _records_by_case(RunDirectory.open(run.path).read().records, wanted.quantities)
    series: dict[CaseKey, list[SeriesVerdict]] = {}
    for item in run.verdict.series:
        series.setdefault((item.board, item.case_id), []).append(item)
    found: dict[tuple[CaseKey, str], Detail] = {}
    for key, records in cases.items():
        case = _case(records, series.get(key, ()), thresholds)
        if case is None:
            continue
        wire, note = wire_of(case.candidate)
        of_case = {
            "test": wanted.tests.get(key, ""),
            "wire": wire,
            "wire_note": note,
            "files": files_of(run, wanted.tests.get(key, ""), case.candidate),
        }
        for quantity, detail in _quantities(case, wanted.quantities[key], wanted.samples):
            found[key, quantity] = {"run": wanted.number, **detail, **of_case}
    return found


def _records_by_case(
    records: Sequence[RunRecord], wanted: Collection[CaseKey]
) -> dict[CaseKey, list[RunRecord]]:
    found: dict[CaseKey, list[RunRecord]] = {}
    for record in records:
        key = (record.board, record.case_id)
        if key in wanted:
            found.setdefault(key, []).append(record)
    return {key: sorted(its, key=lambda record: record.boot_index) for key, its in found.items()}


@dataclass(frozen=True)
class _Case:
    """A case on a board; ``records`` hold all roles in the order in which they were measured."""

    records: tuple[RunRecord, ...]
    series: tuple[SeriesVerdict, ...]
    thresholds: Thresholds

    @property
    def candidate(self) -> tuple[RunRecord, ...]:
        return tuple(record for record in self.records if record.role == "candidate")

    @property
    def role(self) -> str | None:
        """Return what the candidate is set beside; None where nothing is."""
        there = {record.role for record in self.records}
        return next((role for role in ROLES if role in there), None)


def _case(
    records: Sequence[RunRecord], series: Sequence[SeriesVerdict], thresholds: Mapping[str, Thresholds]
) -> _Case | None:
    own = thresholds.get(records[0].bench)
    return _Case(tuple(records), tuple(series), own) if own else None


def _quantities(case: _Case, wanted: Collection[str], most: int) -> Iterator[tuple[str, Detail]]:
    groups: dict[str, list[Metric]] = {}
    for metric in case.thresholds.metrics_of(case.records[0].parameters):
        quantity = split_metric(metric.name).quantity
        same = groups.setdefault(quantity, [])
        if quantity in wanted and (not same or same[0].unit.dimension == metric.unit.dimension):
            same.append(metric)
    own = _samples(case, case.candidate)
    other = _samples(case, [record for record in case.records if record.role == case.role])
    for quantity, metrics in groups.items():
        if metrics:
            name = _sampled(metrics)
            yield quantity, _detail(case, metrics, own.get(name), other.get(name), most)


def _samples(case: _Case, records: Sequence[RunRecord]) -> dict[str, Samples]:
    """Return the charted samples of one role by quantity, as the test report charts them."""
    if not records:
        return {}
    first = records[0]
    story = Story(
        rack=first.rack,
        board=first.board,
        kind=first.kind,
        target=first.target,
        case_id=first.case_id,
        label=label_of(first.case_id, {case.thresholds.bench: case.thresholds}),
        records=tuple(records),
        series=case.series,
        faults=(),
        not_run=(),
        thresholds=case.thresholds,
    )
    return {samples.quantity: samples for samples in samples_of(story)}


def _sampled(metrics: Sequence[Metric]) -> str:
    """Return what hil.reports.allure.samples calls the quantity of these metrics."""
    first = metrics[0]
    return first.name.removesuffix(f"_{first.unit.name}").removesuffix(f"_{name_of(first.statistic)}")


def _detail(
    case: _Case, metrics: Sequence[Metric], own: Samples | None, other: Samples | None, most: int
) -> Detail:
    unit = own.unit if own else metrics[0].unit
    return {
        "unit": unit.name,
        "distribution": _distribution(case, metrics, own, other),
        "boots": _boots(case, metrics, unit),
        "samples": samples_json(own, most=most) if own else None,
    }


def _distribution(
    case: _Case, metrics: Sequence[Metric], own: Samples | None, other: Samples | None
) -> dict[str, Any] | None:
    if own is None:
        return None
    beside = [convert(value, other.unit, own.unit) for value in other.values] if other else None
    log = any(metric.scale == "log" for metric in metrics)
    found = distribution(own.values, beside, role=case.role, log=log)
    limits = [{"stat": mark.name.removesuffix(" limit"), "value": tidy(mark.value)} for mark in own.limits]
    return {**found, "limits": limits} if found else None


def _boots(case: _Case, metrics: Sequence[Metric], unit: Unit) -> dict[str, Any]:
    """Return every boot of every role, in the order in which they were measured."""
    return {
        "role": [record.role for record in case.records],
        "index": [record.boot_index for record in case.records],
        "stats": {
            split_metric(metric.name).stat: [_boot(metric, record, unit) for record in case.records]
            for metric in metrics
        },
    }


def _boot(metric: Metric, record: RunRecord, unit: Unit) -> Number:
    """Return a boot's value; None where nothing counts, beyond the timeout, and without its column."""
    with suppress(ConfigError):
        found = boot_value(metric, record)
        return tidy(convert(found.value, metric.unit, unit)) if found else None
    return None
