# SPDX-License-Identifier: Apache-2.0
"""What the history keeps of a run: the boot values of every metric of its own thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError
from hil.history.saving import DuplicateError, Point, append, build, path_of
from hil.history.segment import ROLES, Image, Segment, SegmentBoard
from hil.metrics.boot_value import boot_value
from hil.metrics.conditions import conditions_of
from hil.model import Comparison, Entry, RunRecord
from hil.store import RunInfo, StoredRun
from hil.store.directory import JOURNAL
from hil.store.files import typed_path
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
    """Append a run to the history in ``folder``.

    Pull requests' runs never enter, nor do runs that have no verdict. One whose sources were not committed
    enters by ``force``.

    Raises:
        ConfigError: the run may not enter, holds nothing, has damaged limits, or is there with other content.
        RigError: the disk does not take it.
    """
    _check_may_enter(run, force=force)
    segment = segment_of(run)
    is_new = append(folder, segment)
    return Added(path_of(folder, segment.rack, segment.run_id), len(segment), is_new, run.journal.torn)


def segment_of(run: StoredRun) -> Segment:
    """Return the boot values of a run: all metrics, candidate and reference, not the base.

    Raises ConfigError: no boot value in it, a boot that is there twice, thresholds that do not
    go with its records.
    """
    info, entries = run.info, run.journal.entries
    records = [entry for entry in entries if isinstance(entry, RunRecord) and entry.role in ROLES]
    head = _head(run, records)
    limits = own_limits(run)
    points = [point for record in records for point in _points_of(record, limits, run)]
    if not points:
        raise ConfigError(f"{run.path}: no boot value: nothing was measured, or all of it is void.")
    try:
        return build(head, _boards(records), _images(run, records, _names(info, entries)), points)
    except DuplicateError as error:
        raise ConfigError(
            f"{run.path / JOURNAL}: {error}.", next_step="measure again; one boot has one value."
        ) from None


def _check_may_enter(run: StoredRun, *, force: bool) -> None:
    info = run.info
    if info.trigger == "pr":
        raise ConfigError(
            f"{run.path}: it measured a pull request, whose figures are not those of main.",
            next_step="add runs of main: `hil run --trigger nightly`, or a run of your own checkout of main.",
        )
    if run.verdict is None:
        raise ConfigError(
            f"{run.path}: the run has no verdict: it is still measuring, or was cut off; what is added "
            "is never changed.",
            next_step=f"when it has ended, judge what is there: hil gate {typed_path(run.path)}",
        )
    if not force and (info.git.dirty or not info.git.commit):
        raise ConfigError(
            f"{run.path}: its sources were not committed, so nobody can find what was measured.",
            next_step="commit and measure again, or add it all the same with --force.",
        )


def _head(run: StoredRun, records: Sequence[RunRecord]) -> dict[str, Any]:
    """Return the first fields of the segment. Raises ConfigError."""
    info = run.info
    others = sorted({_named(one.product, one.rack, one.run_id) for one in records} - {_name(info)})
    if others:
        raise ConfigError(f"{run.path}: run.json is of {_name(info)}, its records of {others[0]}.")
    return {
        "run_id": info.run_id,
        "started_utc": info.started_utc,
        "rack": info.rack,
        "suite": info.suite,
        "trigger": info.trigger,
        "commit": info.git.commit,
        "dirty": info.git.dirty,
        "product": info.product,
    }


def _name(info: RunInfo) -> str:
    return _named(info.product, info.rack, info.run_id)


def _named(product: str, rack: str, run_id: str) -> str:
    return f"{product and f'{product}, '}{rack}: {run_id}"


def _points_of(record: RunRecord, limits: Mapping[str, Thresholds], run: StoredRun) -> Iterator[Point]:
    if record.bench not in limits:
        raise ConfigError(
            f"{run.path / FOLDER}: no {record.bench}.yaml, so the metrics of the run's "
            f"{record.case_id} are unknown.",
            next_step="restore the run's folder, or measure again.",
        )
    for metric in limits[record.bench].metrics_of(record.parameters, [record]):
        found = boot_value(metric, record)
        if found is not None:
            yield Point(
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


def _boards(records: Sequence[RunRecord]) -> list[SegmentBoard]:
    boards: dict[str, list[RunRecord]] = {}
    for record in records:
        boards.setdefault(record.board, []).append(record)
    return [
        SegmentBoard(board, its[0].target, its[0].kind, conditions_of(its)) for board, its in boards.items()
    ]


def _names(info: RunInfo, entries: Sequence[Entry]) -> dict[str, str]:
    """Return the name of each image (``esp32+tick100``) by its SHA-256, as far as the run says."""
    names = {image.sha256: name for name, image in info.firmware.items()}
    for entry in entries:
        if isinstance(entry, Comparison):
            names |= {entry.candidate_sha256: entry.image, entry.other_sha256: entry.image}
    return names


def _images(run: StoredRun, records: Sequence[RunRecord], names: Mapping[str, str]) -> list[Image]:
    """Return what booted in which role; two images of one name are told apart by their digests."""
    rulers: dict[tuple[str, str, str], dict[str, str]] = {}
    for record in records:
        sha256 = record.firmware_sha256
        key = (record.role, names.get(sha256, record.target), sha256)
        ruler = rulers.setdefault(key, {}).setdefault(record.bench, record.ruler_hash)
        if ruler != record.ruler_hash:
            raise ConfigError(
                f"{run.path / JOURNAL}: image {sha256[:12]} measured {record.bench} by two rulers, which "
                "no image does.",
                next_step="restore the file as it was written, or measure again.",
            )
    named = [(role, name) for role, name, _ in rulers]
    return [
        Image(role, name if named.count((role, name)) == 1 else f"{name} {sha256[:8]}", sha256, its)
        for (role, name, sha256), its in rulers.items()
    ]
