# SPDX-License-Identifier: Apache-2.0
"""What stands behind a chart in a reported run: distribution, boots, files.

How samples are distributed, in bins that candidate and other share.

Which files of a run an opened chart leads to: what the site publishes of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hil.base.errors import ConfigError
from hil.base.numeric import np
from hil.base.units import Unit, convert
from hil.metrics.boot_value import boot_value
from hil.metrics.metric import Metric
from hil.metrics.words import metric_words
from hil.model import RunRecord, SeriesVerdict
from hil.reports.allure.samples import CaseSamples, quantity_of, samples_of
from hil.reports.allure.story import Story, limits_of
from hil.reports.trace_notes import PUBLISHED, events_file
from hil.reports.trend.naming import Number, label_of, tidy, tidy_all
from hil.reports.trend.runs import ReportedRun
from hil.thresholds import Thresholds

BINS_FEWEST, BINS_MOST = 6, 60


def distribution(
    candidate: Sequence[float], other: Sequence[float] | None, *, role: str | None, log: bool
) -> dict[str, Any] | None:
    """Return edges and counts; None where the candidate has no value.

    All values are in one unit. Bins are of equal width on the scale, as wide as the rule of Freedman and
    Diaconis (1981) says of both together. The scale is logarithmic where ``log`` and all values are positive.
    """
    own = np.sort(np.asarray(candidate, dtype=float))
    beside = np.sort(np.asarray(other, dtype=float)) if other else None
    if not len(own):
        return None
    values = own if beside is None else np.sort(np.concatenate([own, beside]))
    scaled_log = bool(log and values[0] > 0)
    edges = _edges(values, log=scaled_log)
    return {
        "scale": "log" if scaled_log else "linear",
        "edges": tidy_all(edges.tolist()),
        "candidate": _counts(own, edges),
        "other": None if beside is None else _counts(beside, edges),
        "role": None if beside is None else role,
        "candidate_samples": len(own),
        "other_samples": None if beside is None else len(beside),
    }


def _edges(values: np.ndarray, *, log: bool) -> np.ndarray:
    """Return ascending edges; those of a single value lie a little apart round it."""
    low, high = float(values[0]), float(values[-1])
    if high - low <= abs(high) * 1e-4:  # closer than what trend.json's digits tell apart
        around = abs(high) * 0.01 or 0.5
        return np.array([low - around, high + around])
    scaled = np.log(values) if log else values
    edges = np.linspace(scaled[0], scaled[-1], _bins(scaled) + 1)
    edges = np.exp(edges) if log else edges
    edges[0], edges[-1] = low, high
    return edges


def _bins(scaled: np.ndarray) -> int:
    quarter, three = np.quantile(scaled, [0.25, 0.75])
    width = 2 * (three - quarter) / len(scaled) ** (1 / 3)
    wanted = int(np.ceil((scaled[-1] - scaled[0]) / width)) if width > 0 else BINS_FEWEST
    return int(np.clip(wanted, BINS_FEWEST, BINS_MOST))


def _counts(ordered: np.ndarray, edges: np.ndarray) -> list[int]:
    """Count the values of each bin; a value on an edge belongs to the bin below it."""
    places = np.searchsorted(ordered, edges[1:-1], side="right")
    ends = np.concatenate([[0], places, [len(ordered)]])
    return [int(count) for count in np.diff(ends)]


_FILES = {
    "records.jsonl": "all samples of the run (records.jsonl)",
    "series.csv": "all figures of the run (series.csv)",
    "comparisons.csv": "all comparisons of the run (comparisons.csv)",
}
_IN_TEST = "samples (CSV), charts and console of this case, in the test report"


def files_of(run: ReportedRun, test: str, records: Sequence[RunRecord]) -> list[dict[str, str]]:
    """Return text and address (from the trend page) of each; ``test`` is the id of the case's Allure result,
    ``records`` are the case's."""
    found = [{"text": _IN_TEST, "href": f"../tests/index.html#{test}"}] if test else []
    there = {name: text for name, text in _FILES.items() if (run.path / name).is_file()}
    there |= dict(_traces(run, records))
    return found + [{"text": text, "href": f"../runs/{run.run_id}/{name}"} for name, text in there.items()]


def _traces(run: ReportedRun, records: Sequence[RunRecord]) -> Iterator[tuple[str, str]]:
    for record in records:
        path = events_file(run.path, record)
        for suffix in PUBLISHED:
            if path and (file := path.with_suffix(suffix)).is_file():
                name = file.relative_to(run.path).as_posix()
                yield name, f"scheduler trace, boot {record.boot_index} ({suffix.removeprefix('.')})"


ROLES = ("base", "reference")  # what a candidate is set beside; the base where there are both

CaseKey = tuple[str, str]  # board, case id
Detail = dict[str, Any]


@dataclass(frozen=True)
class Wanted:
    """The details to make of one run: the quantities of each case. ``tests`` are ids of Allure's results."""

    run: ReportedRun
    number: int
    quantities: Mapping[CaseKey, Collection[str]]
    tests: Mapping[CaseKey, str]


def details_of(wanted: Wanted) -> dict[tuple[CaseKey, str], Detail]:
    """Return the details by case and quantity. Raises ConfigError: the thresholds are damaged."""
    if not wanted.quantities:
        return {}
    run = wanted.run
    thresholds = limits_of(run.run)
    cases = _records_by_case(run.run.records, wanted.quantities)
    series: dict[CaseKey, list[SeriesVerdict]] = {}
    for item in run.verdict.series:
        series.setdefault((item.board, item.case_id), []).append(item)
    found: dict[tuple[CaseKey, str], Detail] = {}
    for key, records in cases.items():
        case = _case(records, series.get(key, ()), thresholds)
        if case is None:
            continue
        of_case = {
            "test": wanted.tests.get(key, ""),
            "files": files_of(run, wanted.tests.get(key, ""), case.candidate),
        }
        for quantity, detail in _quantities(case, wanted.quantities[key]):
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


def _quantities(case: _Case, wanted: Collection[str]) -> Iterator[tuple[str, Detail]]:
    groups: dict[str, list[Metric]] = {}
    for metric in case.thresholds.metrics_of(case.records[0].parameters, case.records):
        quantity = metric_words(metric.name).quantity
        same = groups.setdefault(quantity, [])
        if quantity in wanted and (not same or same[0].unit.dimension == metric.unit.dimension):
            same.append(metric)
    own = _samples(case, case.candidate)
    other = _samples(case, [record for record in case.records if record.role == case.role])
    for quantity, metrics in groups.items():
        if metrics:
            name = quantity_of(metrics[0])
            yield quantity, _detail(case, metrics, own.get(name), other.get(name))


def _samples(case: _Case, records: Sequence[RunRecord]) -> dict[str, CaseSamples]:
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


def _detail(
    case: _Case, metrics: Sequence[Metric], own: CaseSamples | None, other: CaseSamples | None
) -> Detail:
    unit = own.unit if own else metrics[0].unit
    return {
        "unit": unit.name,
        "distribution": _distribution(case, metrics, own, other),
        "boots": _boots(case, metrics, unit),
    }


def _distribution(
    case: _Case, metrics: Sequence[Metric], own: CaseSamples | None, other: CaseSamples | None
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
            metric_words(metric.name).stat: [_boot(metric, record, unit) for record in case.records]
            for metric in metrics
        },
    }


def _boot(metric: Metric, record: RunRecord, unit: Unit) -> Number:
    """Return a boot's value; None where nothing counts, beyond the timeout, and without its column."""
    with suppress(ConfigError):
        found = boot_value(metric, record)
        return tidy(convert(found.value, metric.unit, unit)) if found else None
    return None
