# SPDX-License-Identifier: Apache-2.0
"""A run's folder taken apart into one story for each case on each board, which becomes one result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hil.base.errors import ConfigError, ExitCode
from hil.base.paths import PROJECT_THRESHOLDS
from hil.model import ComparedSeries, Entry, Fault, NotRun, RunRecord, SeriesVerdict, Verdict, bench_of
from hil.reports.boards import natures_of
from hil.reports.compared import ranked
from hil.reports.crashes import Crash, crashes_in
from hil.store import JudgedRun, RunInfo
from hil.thresholds import Thresholds, load_project, own_limits


@dataclass(frozen=True)
class Story:
    """What is known of one case on one board. ``records`` hold one a boot.

    ``crashes`` are those of its board where the firmware was at fault, or crashes were counted.
    """

    rack: str
    board: str
    kind: str
    target: str
    case_id: str
    label: str
    records: tuple[RunRecord, ...]
    series: tuple[SeriesVerdict, ...]
    faults: tuple[Fault, ...]
    not_run: tuple[NotRun, ...]
    thresholds: Thresholds | None
    compared: tuple[ComparedSeries, ...] = ()
    crashes: tuple[Crash, ...] = ()

    @property
    def bench(self) -> str:
        return bench_of(self.case_id)

    @property
    def place(self) -> str:
        """Return "v1 (virtual)"."""
        return f"{self.board} ({self.kind})" if self.kind else self.board

    @property
    def title(self) -> str:
        """Return "publish transport=tls on v1 (virtual)"."""
        return f"{self.bench} {self.label} on {self.place}"


@dataclass(frozen=True)
class RunStory:
    """One run; ``faults`` are those of no single case."""

    path: Path
    info: RunInfo
    verdict: Verdict
    stories: tuple[Story, ...]
    faults: tuple[Fault, ...]

    @property
    def run_id(self) -> str:
        return self.verdict.run_id or self.path.name


def story_of(run: JudgedRun) -> RunStory:
    """Take a run apart. Raises ConfigError where its thresholds cannot be read."""
    info, verdict, entries = run.info, run.verdict, run.journal.entries
    thresholds = limits_of(run)
    general = tuple(fault for fault in verdict.faults if not (fault.board and fault.case_id))
    keys = _keys(entries)
    parts = _parts_of(entries, verdict)
    first = _first_missing(keys, verdict)
    crashes, natures = crashes_in(run.path), natures_of(info, verdict)
    stories = tuple(
        _story(
            info.rack,
            natures.get(key[0], ("", "")),
            key,
            parts.get(key, _Parts()),
            thresholds=thresholds,
            extra=tuple(fault for fault in general if fault.board in ("", key[0])) if key in first else (),
            crashes=tuple(crash for crash in crashes if crash.board == key[0]),
        )
        for key in keys
    )
    return RunStory(run.path, info, verdict, stories, general)


def limits_of(run: JudgedRun) -> Mapping[str, Thresholds]:
    """Return the run's own thresholds, as of its day; the checkout's for a run from before they were kept.

    Raises ConfigError where they cannot be read.
    """
    return own_limits(run) or load_project(PROJECT_THRESHOLDS, today=run.info.day)


def _keys(entries: Iterable[Entry]) -> list[tuple[str, str]]:
    """Return every (board, case id) that the journal names, in its order; a base is no case."""
    found = [
        (entry.board, entry.case_id)
        for entry in entries
        if not (isinstance(entry, RunRecord) and entry.role != "candidate")
    ]
    return [key for key in dict.fromkeys(found) if all(key)]


def _first_missing(keys: Sequence[tuple[str, str]], verdict: Verdict) -> set[tuple[str, str]]:
    """Return the first case that each board lost: the faults of the board and of the rack are shown there."""
    missing = {(item.board, item.case_id) for item in verdict.not_run if item.expected}
    first: dict[str, tuple[str, str]] = {}
    for key in keys:
        if key in missing:
            first.setdefault(key[0], key)
    return set(first.values())


@dataclass
class _Parts:
    """What journal and verdict hold of one case on one board, gathered in one pass over each."""

    records: list[RunRecord] = field(default_factory=list)
    series: list[SeriesVerdict] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    not_run: list[NotRun] = field(default_factory=list)
    compared: list[ComparedSeries] = field(default_factory=list)


def _parts_of(entries: Iterable[Entry], verdict: Verdict) -> dict[tuple[str, str], _Parts]:
    found: defaultdict[tuple[str, str], _Parts] = defaultdict(_Parts)
    for entry in entries:
        if isinstance(entry, RunRecord) and entry.role == "candidate":
            found[entry.board, entry.case_id].records.append(entry)
    for series in verdict.series:
        found[series.board, series.case_id].series.append(series)
    for fault in verdict.faults:
        found[fault.board, fault.case_id].faults.append(fault)
    for item in verdict.not_run:
        found[item.board, item.case_id].not_run.append(item)
    for compared in ranked(verdict):
        for board in dict.fromkeys(compared.boards):
            found[board, compared.case_id].compared.append(compared)
    return found


def _story(
    rack: str,
    nature: tuple[str, str],
    key: tuple[str, str],
    parts: _Parts,
    *,
    thresholds: Mapping[str, Thresholds],
    extra: tuple[Fault, ...],
    crashes: tuple[Crash, ...],
) -> Story:
    board, case_id = key
    records = parts.records
    kind, target = (records[0].kind, records[0].target) if records else nature
    return Story(
        rack=rack,
        board=board,
        kind=kind,
        target=target,
        case_id=case_id,
        label=case_label(case_id, thresholds),
        records=tuple(sorted(records, key=lambda record: record.boot_index)),
        series=tuple(parts.series),
        faults=(*parts.faults, *extra),
        not_run=tuple(parts.not_run),
        thresholds=thresholds.get(bench_of(case_id)),
        compared=tuple(parts.compared),
        crashes=crashes if _crashed(board, (*parts.faults, *extra), records) else (),
    )


def _crashed(board: str, faults: Iterable[Fault], records: Iterable[RunRecord]) -> bool:
    return any(fault.board == board and fault.exit_code == ExitCode.FIRMWARE for fault in faults) or any(
        record.environment.get("device", {}).get(f"{what}_count")
        for record in records
        for what in ("panics", "watchdogs")
    )


def case_label(case_id: str, thresholds: Mapping[str, Thresholds]) -> str:
    """Return the parameters that differ from their defaults; all where the bench is not known."""
    bench, parameters = parse_case_id(case_id)
    limits = thresholds.get(bench)
    return limits.case_label(parameters) if limits else case_id.partition("/")[2]


def parse_case_id(case_id: str) -> tuple[str, dict[str, str]]:
    """Take apart what hil.model.format_case_id made. Raises ConfigError."""
    bench, _, pairs = case_id.partition("/")
    found = [pair.partition("=") for pair in pairs.split(",") if pair]
    if not bench or any(not sign for _, sign, _ in found):
        raise ConfigError(f"{case_id!r} in the journal is no name of a case; expected bench/key=value,….")
    return bench, {key: value for key, _, value in found}
