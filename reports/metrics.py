# SPDX-License-Identifier: Apache-2.0
"""A judged run as Prometheus metrics: base units, one group a board, labels that stay the same.

``publish_latency_p99_us`` of a verdict becomes ``hil_publish_latency_seconds{stat="p99"}``, and its limit
``hil_publish_latency_limit_seconds{stat="p99"}``. Names are derived from the metric's name and unit, so a new
bench needs nothing here. docs/operate/metrics.md lists what there is.

Whatever changes with each run (commit, run id, firmware) is a label of ``hil_run_info`` alone: any other
series with such a label would end with each commit, and a new one begin.

A rack's health is one group a rack, of the job ``hil_rack``. All but the quarantine are figures over a
window; its length stands in the label ``days``, for the same name with another window is another figure.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from hil.base.units import convert, find_unit
from hil.history.files import read_past
from hil.history.from_run import outcome_of
from hil.history.health.summary import summarise
from hil.history.health.types import BoardHealth, RackHealth, unix_s
from hil.metrics.metric import STATISTICS, name_of
from hil.model import ComparedSeries, SeriesVerdict, Verdict, bench_of
from hil.reports.boards import natures_of
from hil.reports.names import Named
from hil.store import RunInfo
from hil.store.run_info import measured_commit, utc_now

# dimension → our base unit, how many of it are one of Prometheus', the ending of Prometheus' name
_BASE_UNITS = {
    "time": ("s", 1, "_seconds"),
    "size": ("bytes", 1, "_bytes"),
    "rate": ("bps", 8, "_bytes_per_second"),
    "ratio": ("ratio", 1, "_ratio"),
    "count": ("count", 1, ""),  # _count is what Prometheus calls a histogram's
    "cycles": ("cycles", 1, "_cycles"),
    "instructions": ("instructions", 1, "_instructions"),
    "frequency": ("ops", 1, "_per_second"),
    "power": ("dbm", 1, "_dbm"),
    "current": ("ma", 1000, "_amperes"),
    "energy": ("mj", 1000, "_joules"),
    "number": ("value", 1, ""),
}
_LIMIT = "_limit"


@dataclass(frozen=True)
class Name:
    """A verdict metric's name taken apart: ``publish_latency_p99_us`` → publish_latency, p99, _seconds."""

    stem: str
    statistic: str
    ending: str

    @property
    def value(self) -> str:
        return f"hil_{self.stem}{self.ending}"

    @property
    def limit(self) -> str:
        return f"hil_{self.stem}{_LIMIT}{self.ending}"

    @property
    def statistic_label(self) -> dict[str, str]:
        """``stat`` rather than ``quantile``, which Prometheus keeps for summaries; none for a plain ratio."""
        return {"stat": self.statistic} if self.statistic else {}


def parse_name(metric: str, unit: str) -> Name:
    """Take apart a metric's name, whose ``unit`` is that of its verdict. Raises QuantityError."""
    stem = metric.rpartition("_")[0]
    ending = _BASE_UNITS[find_unit(unit).dimension][2]
    found = [one for one in STATISTICS if stem.endswith(f"_{name_of(one)}")]
    statistic = found[0] if found else ""
    return Name(stem.removesuffix(f"_{name_of(statistic)}") if found else stem, statistic, ending)


def in_base_unit(value: float, unit: str) -> float:
    """Convert to Prometheus' base unit: seconds, bytes, bytes per second, amperes, ratios."""
    source = find_unit(unit)
    base, many, _ = _BASE_UNITS[source.dimension]
    return float(f"{convert(value, source, find_unit(base)) / many:.9g}")  # verdicts have six digits


def case_labels(item: Named) -> dict[str, str]:
    """Return the labels of a case: short ones for people, and a hash of its full name.

    The short label names what differs from the defaults, so it would stay the same for another case when a
    default changes; the hash tells the two apart.
    """
    return {
        "bench": bench_of(item.case_id),
        "case": item.case_label or item.case_id,
        "case_hash": hashlib.sha256(item.case_id.encode()).hexdigest()[:8],
    }


@dataclass
class Families(Collector):
    """Gauges by name, each sample with the board's own labels besides its own.

    ``clashes`` names the verdict metrics that would have come to a sample that is there already.
    """

    common: Mapping[str, str]
    clashes: set[str] = field(default_factory=set)
    _families: dict[str, GaugeMetricFamily] = field(default_factory=dict)
    _measured: set[str] = field(default_factory=set)
    _seen: set[tuple[str, tuple[tuple[str, str], ...]]] = field(default_factory=set)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        return self._families.values()

    def add(self, name: str, help_text: str, value: float, **labels: str) -> None:
        """Add a sample; the same name and labels must not be there already."""
        everything = {**labels, **self.common}
        self._seen.add((name, tuple(sorted(everything.items()))))
        family = self._families.setdefault(name, GaugeMetricFamily(name, help_text))
        family.add_sample(name, everything, value)

    def add_series(self, item: SeriesVerdict) -> None:
        """Add a verdict's value and limit, or note that their names are taken."""
        name = parse_name(item.metric, item.unit)
        labels = {**case_labels(item), **name.statistic_label}
        if self._is_taken(name, labels):
            self.clashes.add(item.metric)
            return
        self._measured |= {name.value, name.limit}
        if item.value is not None:
            text = f"{name.stem}: what the run measured, one sample a case and statistic."
            self.add(name.value, text, in_base_unit(item.value, item.unit), **labels)
        if item.limit is not None:
            text = f"{name.stem}: the limit in force, one sample a case and statistic."
            self.add(name.limit, text, in_base_unit(item.limit, item.unit), **labels)

    def _is_taken(self, name: Name, labels: Mapping[str, str]) -> bool:
        key = tuple(sorted({**labels, **self.common}.items()))
        own = {name.value, name.limit} & (self._families.keys() - self._measured)
        seen = any((one, key) in self._seen for one in (name.value, name.limit))
        return bool(own) or seen or name.stem.endswith(_LIMIT)


@dataclass(frozen=True)
class Group:
    """What one board pushes: its metrics, and the labels that name the group in the Pushgateway.

    ``board`` is "" where a rack pushes what it knows of itself, ``product`` where none is named. Two products
    on one board are two groups, so that neither replaces the other's figures.
    """

    job: str
    rack: str
    board: str
    families: Families
    product: str = ""

    @property
    def key(self) -> dict[str, str]:
        """Return the labels of the group besides its job: a name that is "" is no label."""
        named = {"rack": self.rack, "board": self.board, "product": self.product}
        return {label: value for label, value in named.items() if value}


def board_groups(info: RunInfo, verdict: Verdict) -> list[Group]:
    """Return one group a planned board, those that measured nothing included; ``info`` is run.json."""
    return [
        Group(
            job=f"hil_{info.trigger}",
            rack=info.rack,
            board=board,
            families=_families(info, verdict, board, *nature),
            product=info.product,
        )
        for board, nature in sorted(natures_of(info, verdict).items())
    ]


def _families(info: RunInfo, verdict: Verdict, board: str, kind: str, target: str) -> Families:
    families = Families({"kind": kind, "target": target})
    series = [item for item in verdict.series if item.board == board]
    _add_run(families, info, verdict, target)
    _add_board(families, verdict, board, series)
    _add_cases(families, series)
    for item in series:
        families.add_series(item)
    for compared in verdict.compared:
        if board in compared.boards:
            _add_comparison(families, compared)
    return families


def _add_run(families: Families, info: RunInfo, verdict: Verdict, target: str) -> None:
    images = sorted(info.firmware.items())
    image = next((image for name, image in images if name.partition("+")[0] == target), None)  # or a variant
    labels = {
        "run_id": verdict.run_id or info.run_id,
        "product": info.product,
        "suite": info.suite,
        "commit": measured_commit(info),
        "title": info.git.title,
        "url": info.ci.report or info.ci.url,
        "dirty": "true" if info.git.dirty else "false",
        "pull_request": info.ci.pull_request,
        "firmware": image.sha256[:12] if image else "",
        "idf": image.idf_version if image else "",
        "profile": info.profile,
        "hil": info.versions.get("hil"),
    }
    text = "What was measured: join it for the commit; 1 always."
    families.add("hil_run_info", text, 1, **{key: str(value) for key, value in labels.items() if value})
    text = "How the whole run ended: 0 pass, 1 firmware, 2 configuration, 3 rig, 4 undecided or incomplete."
    families.add("hil_run_exit_code", text, verdict.exit_code)
    started = _timestamp(info.started_utc)
    ended = _timestamp(info.lease_released_utc)
    if started is not None:
        families.add("hil_run_timestamp_seconds", "When the run started, Unix time.", started)
    if started is not None and ended is not None:
        text = "From the start of the run until its boards were free again."
        families.add("hil_run_duration_seconds", text, max(0.0, ended - started))


def _add_comparison(families: Families, item: ComparedSeries) -> None:
    """Add what a comparison says of all its boards; each of them pushes it."""
    labels = {**case_labels(item), "metric": item.metric, "role": item.role}
    if item.relative and item.change is not None:
        text = (
            "Change against the base (or the reference) over the boards of the target, 0.1 is ten per cent."
        )
        families.add("hil_comparison_change_ratio", text, item.change, **labels)
    text = "Boots that a comparison took, over the boards of the target."
    families.add("hil_comparison_boots", text, item.candidate_boots, **labels, of="candidate")
    families.add("hil_comparison_boots", text, item.other_boots, **labels, of="other")
    text = "What the gate says of a comparison, in label outcome; 1 always."
    blocking = "true" if item.blocking else "false"
    families.add("hil_comparison_outcome", text, 1, **labels, outcome=item.outcome, blocking=blocking)


def _timestamp(text: object) -> float | None:
    try:
        return datetime.datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None


def _add_board(families: Families, verdict: Verdict, board: str, series: Sequence[SeriesVerdict]) -> None:
    own = [item for item in verdict.not_run if item.board == board]
    measured = {item.case_id for item in series if item.samples}
    cases = {
        "measured": len(measured),
        "not_run": sum(item.expected and item.case_id not in measured for item in own),
        "ruled_out": sum(not item.expected and not item.to for item in own),
    }
    faults = [fault.owner for fault in verdict.faults if fault.board in ("", board)]
    idle = cases["ruled_out"] and not (cases["measured"] or cases["not_run"] or faults)
    if not idle:
        text = "1 where the board gave samples in this run, 0 where it gave none."
        families.add("hil_board_up", text, int(cases["measured"] > 0))
    text = (
        "Cases of this board in the suite: with samples, without, and those its limits or its chip rule out."
    )
    for state, count in cases.items():
        families.add("hil_board_cases", text, count, state=state)
    text = "Faults of this board, and those of the whole rack, by whose they are."
    for owner in OWNERS:
        families.add("hil_board_faults", text, faults.count(owner), owner=owner)


def _add_cases(families: Families, series: Sequence[SeriesVerdict]) -> None:
    samples: dict[str, SeriesVerdict] = {}
    for item in series:
        if item.case_id not in samples or item.samples > samples[item.case_id].samples:
            samples[item.case_id] = item
    for item in samples.values():
        text = "Samples of a case, the warm-up left out."
        families.add("hil_case_samples", text, item.samples, **case_labels(item))
    for item in series:
        if item.limit is None and not item.blocking:
            continue  # nothing was decided
        families.add(
            "hil_series_outcome",
            "What the gate says of a series that has a limit or blocks, in label outcome; 1 always.",
            1,
            **case_labels(item),
            metric=item.metric,
            outcome=outcome_of(item),
            blocking="true" if item.blocking else "false",
        )


JOB = "hil_rack"
OWNERS = ("configuration", "firmware", "rig")


def rack_group(health: RackHealth) -> Group:
    """Return what a rack pushes of itself; a ratio without anything to count is absent, not zero."""
    families = Families({})
    window = {"days": str(health.days)}
    _add_rack(families, health, {"kind": kind_of(health), **window})
    for board in health.boards:
        labels = {"board": board.board, "kind": board.kind, "target": board.target}
        _add_rack_board(families, board, labels, window)
    return Group(JOB, health.rack, "", families)


def kind_of(health: RackHealth) -> str:
    """Return the most real kind of a rack's boards; physical ones share a rack with no others."""
    kinds = {board.kind for board in health.boards}
    return next((kind for kind in ("physical", "emulated", "virtual") if kind in kinds), "unknown")


def _add_rack(families: Families, health: RackHealth, labels: Mapping[str, str]) -> None:
    families.add("hil_rack_runs", "Runs of the rack in the window.", health.runs, **labels)
    text = "Faults of the rack's runs in the window, by whose they are; the rig's are the infrastructure's."
    for owner in sorted({*OWNERS, *health.infrastructure_faults}):
        families.add(
            "hil_rack_infrastructure_faults",
            text,
            health.infrastructure_faults.get(owner, 0),
            **labels,
            owner=owner,
        )
    text = "Share of hil_rack_runs in which the rig failed, on a board or as a whole."
    _add_known(families, "hil_rack_failed_ratio", text, health.failure_ratio, labels)
    text = (
        "Mean time from the first of consecutive runs that the rig failed on a board to its next sound one."
    )
    _add_known(families, "hil_rack_recovery_seconds", text, health.mean_time_to_recovery_s, labels)


def _add_rack_board(
    families: Families, board: BoardHealth, labels: Mapping[str, str], window: Mapping[str, str]
) -> None:
    windowed = {**labels, **window}
    families.add("hil_rack_board_runs", "Runs that the board took part in.", board.runs, **windowed)
    text = "Share of hil_rack_board_runs in which the rig failed on the board."
    _add_known(families, "hil_rack_board_failed_ratio", text, board.failure_ratio, windowed)
    text = "Mean time from the first of consecutive runs that the rig failed to the next sound one."
    _add_known(families, "hil_rack_board_recovery_seconds", text, board.mean_time_to_recovery_s, windowed)
    text = "Latest runs without a sound one between them in which the rig failed on the board."
    families.add("hil_rack_board_faults_in_a_row", text, board.faults_in_a_row, **windowed)
    text = "1 where the board is in quarantine and takes part in no run, otherwise 0."
    families.add("hil_rack_board_quarantined", text, int(board.quarantine is not None), **labels)
    text = "When the latest run that knew the board started, Unix time."
    _add_known(families, "hil_rack_board_seen_timestamp_seconds", text, unix_s(board.last_seen_utc), labels)


def _add_known(
    families: Families, name: str, text: str, value: float | None, labels: Mapping[str, str]
) -> None:
    if value is not None:
        families.add(name, text, value, **labels)


def rack_groups(history: Path, racks: Collection[str]) -> tuple[list[Group], str]:
    """Return one group for each of ``racks`` that the history knows, and a sentence on what stood in the way.

    ``history`` is its folder. Where it holds nothing of a rack there is no group, and nothing to say.
    """
    past = read_past(history, racks=racks)
    known = summarise(past.runs, now_utc=utc_now())
    return [rack_group(health) for health in known], " ".join(past.left_out)
