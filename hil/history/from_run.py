# SPDX-License-Identifier: Apache-2.0
"""What the history keeps of a run, from the folder that it left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hil.base.errors import ConfigError
from hil.history import files
from hil.history.building import BootPoint, DuplicateError, build
from hil.history.health.from_run import exit_code_of, health_of
from hil.history.judgements import unchanged_of
from hil.history.summary import (
    ROLES,
    SCHEMA_VERSION,
    BootedImage,
    BootValues,
    CaseFigures,
    MeasuredBoard,
    StoredFigure,
    Summary,
)
from hil.metrics.boot_value import boot_value
from hil.metrics.conditions import conditions_of
from hil.model import Comparison, Entry, Outcome, RunRecord, SeriesVerdict
from hil.store import RunInfo, StoredRun
from hil.store.directory import JOURNAL
from hil.store.files import typed_path
from hil.store.run_info import measured_commit
from hil.thresholds import own_limits
from hil.thresholds.loader import FOLDER
from hil.thresholds.types import Thresholds


@dataclass(frozen=True)
class Added:
    """A run in the history. ``is_new`` is False where it was there; ``note`` is what to know of it."""

    path: Path
    values: int
    is_new: bool
    note: str = ""


def add_run(run: StoredRun, folder: Path, *, force: bool = False) -> Added:
    """Enter a run with its boot values into the history in ``folder``.

    Pull requests' runs never enter so, nor do runs that have no verdict. One whose sources were not committed
    enters by ``force``.

    Raises:
        ConfigError: the run may not enter, holds nothing, has damaged limits, or is there with other values.
        RigError: the disk does not take it.
    """
    _check_may_enter(run, force=force)
    values = boot_values_of(run)
    summary = msgspec.structs.replace(summary_of(run), boot_values=values)
    is_new = files.keep(folder, summary)
    return Added(files.path_of(folder, summary), len(values), is_new, run.journal.torn)


def keep_run(run: StoredRun, folder: Path) -> Summary:
    """Enter a run without boot values, which stay where they are there; return what the history says of it.

    Raises:
        ConfigError: its rack's name is none of a folder, or its limits or its file there are damaged.
        RigError: the disk does not take it.
    """
    summary = summary_of(run)
    files.keep(folder, summary)
    return summary


def summary_of(run: StoredRun) -> Summary:
    """Return what the history keeps of a run, without boot values. Raises ConfigError: damaged limits."""
    return msgspec.structs.replace(figures_of(run), unchanged=unchanged_of(run))


def figures_of(run: StoredRun) -> Summary:
    """Return what a run is, what the gate said of each figure, and how the rack fared."""
    info, verdict = run.info, run.verdict
    own = measured_commit(info) == info.git.commit
    return Summary(
        schema=SCHEMA_VERSION,
        run_id=run.run_id,
        started_utc=info.started_utc,
        rack=info.rack,
        suite=info.suite,
        trigger=info.trigger,
        commit=measured_commit(info),
        dirty=info.git.dirty,
        product=info.product,
        title=info.git.title if own else "",
        author=info.git.author if own else "",
        profile=info.profile,
        url=info.ci.url,
        outcome=verdict.outcome if verdict else "",
        exit_code=exit_code_of(run),
        health=health_of(run),
        cases=tuple(_cases(verdict.series if verdict else ())),
    )


def outcome_of(item: SeriesVerdict) -> Outcome:
    """Return what a series comes to; what is beyond its limit, though not provably, has not passed."""
    return "undecided" if item.note == "marginal" else item.outcome


def _cases(series: Iterable[SeriesVerdict]) -> Iterator[CaseFigures]:
    cases: dict[tuple[str, str], list[SeriesVerdict]] = {}
    for item in series:
        cases.setdefault((item.board, item.case_id), []).append(item)
    for (board, case_id), items in cases.items():
        first = items[0]
        metrics = {item.metric: _figure(item) for item in items}
        yield CaseFigures(board, first.kind, first.target, case_id, first.case_label, metrics)


def _figure(item: SeriesVerdict) -> StoredFigure:
    return StoredFigure(
        value=item.value,
        outcome=outcome_of(item),
        limit=item.limit,
        blocking=None if item.limit is None else item.blocking,
        direction=item.direction,
        at_least=item.at_least,
    )


def boot_values_of(run: StoredRun) -> BootValues:
    """Return the boot values of a run: all metrics, candidate and reference, not the base.

    Raises ConfigError: no boot value in it, a boot that is there twice, records of another run, thresholds
    that do not go with its records.
    """
    info, entries = run.info, run.journal.entries
    records = [entry for entry in entries if isinstance(entry, RunRecord) and entry.role in ROLES]
    _check_own(run, records)
    limits = own_limits(run)
    points = [point for record in records for point in _points_of(record, limits, run)]
    if not points:
        raise ConfigError(
            f"{run.path}: no boot value: nothing was measured, or all of it is void.",
            next_step="measure again: hil run",
        )
    try:
        return build(_boards(records), _images(run, records, _names(info, entries)), points)
    except DuplicateError as error:
        raise ConfigError(
            f"{run.path / JOURNAL}: {error}.", next_step="measure again; one boot has one value."
        ) from None


def _check_may_enter(run: StoredRun, *, force: bool) -> None:
    info = run.info
    if info.trigger == "pr":
        raise ConfigError(
            f"{run.path}: it measured a pull request, not main.",
            next_step="add runs of main: `hil run --trigger nightly`, or a run of your own checkout of main.",
        )
    if run.verdict is None:
        raise ConfigError(
            f"{run.path}: the run has no verdict: it is still measuring or was interrupted; the "
            "history cannot be changed later.",
            next_step=f"when it has ended, judge it: hil gate {typed_path(run.path)}",
        )
    if not force and (info.git.dirty or not info.git.commit):
        raise ConfigError(
            f"{run.path}: its sources were not committed, so the measured firmware cannot be traced.",
            next_step="commit and measure again, or add it anyway with --force.",
        )


def _check_own(run: StoredRun, records: Sequence[RunRecord]) -> None:
    """Raise ConfigError where the folder's name or run.json says otherwise than the records do."""
    own = _named(run.info.product, run.info.rack, run.run_id)
    others = sorted({_named(one.product, one.rack, one.run_id) for one in records} - {own})
    if others:
        raise ConfigError(
            f"{run.path}: its folder and run.json belong to {own}, its records to {others[0]}.",
            next_step="rename the folder back, or measure again.",
        )


def _named(product: str, rack: str, run_id: str) -> str:
    return f"{product and f'{product}, '}{rack}: {run_id}"


def _points_of(record: RunRecord, limits: Mapping[str, Thresholds], run: StoredRun) -> Iterator[BootPoint]:
    if record.bench not in limits:
        raise ConfigError(
            f"{run.path / FOLDER}: no {record.bench}.yaml, so the metrics of the run's "
            f"{record.case_id} are unknown.",
            next_step="restore the run's folder, or measure again.",
        )
    for metric in limits[record.bench].metrics_of(record.parameters, [record]):
        found = boot_value(metric, record)
        if found is not None:
            yield BootPoint(
                board=record.board,
                role=record.role,
                index=record.boot_index,
                sha256=record.firmware_sha256,
                case_id=record.case_id,
                metric=metric.name,
                value=found.value,
                samples=found.samples,
                hits=found.hits,
            )


def _boards(records: Sequence[RunRecord]) -> list[MeasuredBoard]:
    boards: dict[str, list[RunRecord]] = {}
    for record in records:
        boards.setdefault(record.board, []).append(record)
    return [
        MeasuredBoard(board, its[0].target, its[0].kind, conditions_of(its)) for board, its in boards.items()
    ]


def _names(info: RunInfo, entries: Sequence[Entry]) -> dict[str, str]:
    """Return the name of each image (``esp32+tick100``) by its SHA-256, as far as the run says."""
    names = {image.sha256: name for name, image in info.firmware.items()}
    for entry in entries:
        if isinstance(entry, Comparison):
            names |= {entry.candidate_sha256: entry.image, entry.other_sha256: entry.image}
    return names


def _images(run: StoredRun, records: Sequence[RunRecord], names: Mapping[str, str]) -> list[BootedImage]:
    """Return what booted in which role; two images of one name are told apart by their digests."""
    rulers: dict[tuple[str, str, str], dict[str, str]] = {}
    for record in records:
        sha256 = record.firmware_sha256
        key = (record.role, names.get(sha256, record.target), sha256)
        ruler = rulers.setdefault(key, {}).setdefault(record.bench, record.ruler_hash)
        if ruler != record.ruler_hash:
            raise ConfigError(
                f"{run.path / JOURNAL}: image {sha256[:12]} measured {record.bench} by two rulers, "
                "which is impossible.",
                next_step="restore the file as it was written, or measure again.",
            )
    named = [(role, name) for role, name, _ in rulers]
    return [
        BootedImage(
            role="candidate" if role == "candidate" else "reference",
            name=name if named.count((role, name)) == 1 else f"{name} {sha256[:8]}",
            sha256=sha256,
            rulers=its,
        )
        for (role, name, sha256), its in rulers.items()
    ]
