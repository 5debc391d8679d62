# SPDX-License-Identifier: Apache-2.0
"""Writing the history: a run's file, once and for ever; and the slice of a history that a run used.

A segment from single boot values, in one order whatever order they come in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hil.base.errors import ConfigError
from hil.history.loading import SLICE, read_bytes
from hil.history.segment import HEAD, SCHEMA_VERSION, Boot, Image, Segment, SegmentBoard, to_bytes, to_json
from hil.metrics.sessions import History, SeriesHistory, Session
from hil.model import bench_of
from hil.store.files import disk_error, replace_file

BootKey = tuple[str, int, str, str]  # board, boot index, role, SHA-256 of the image


@dataclass(frozen=True)
class Point:
    """One boot's value of one metric of one case."""

    board: str
    role: str
    index: int
    sha256: str
    case_id: str
    metric: str
    value: float
    samples: int
    hits: int

    @property
    def boot(self) -> BootKey:
        return (self.board, self.index, self.role, self.sha256)


class DuplicateError(ValueError):
    """Two values of one boot, case and metric."""

    def __init__(self, point: Point) -> None:
        super().__init__(f"{point.role} boot {point.index} of board {point.board} has {point.case_id} twice")


def build(
    head: Mapping[str, Any], boards: Iterable[SegmentBoard], images: Iterable[Image], points: Iterable[Point]
) -> Segment:
    """Return the segment that holds ``points``; ``head`` are its first fields. Raises DuplicateError."""
    series = _by_series(points)
    boots = sorted({boot for values in series.values() for boot in values})
    known_boards = sorted(boards, key=lambda board: board.id)
    known_images = sorted(images, key=lambda image: (image.role, image.name, image.sha256))
    board_of = {board.id: n for n, board in enumerate(known_boards)}
    image_of = {(image.role, image.sha256): n for n, image in enumerate(known_images)}
    cases = sorted({case_id for case_id, _ in series})
    metrics = sorted({metric for _, metric in series})
    number_of = {boot: n for n, boot in enumerate(boots)}
    sets = sorted({tuple(sorted(number_of[boot] for boot in values)) for values in series.values()})
    rows, ordered = _rows(series, cases, metrics, sets, number_of)
    return Segment(
        **head,
        boards=tuple(known_boards),
        images=tuple(known_images),
        boots=tuple(Boot(board_of[board], index, image_of[role, sha]) for board, index, role, sha in boots),
        cases=tuple(cases),
        metrics=tuple(metrics),
        boot_sets=tuple(sets),
        series=np.array(rows, dtype=np.intp).reshape(-1, 3),
        values=np.array([point.value for point in ordered], dtype=np.float64),
        samples=np.array([point.samples for point in ordered], dtype=np.int64),
        hits=np.array([point.hits for point in ordered], dtype=np.int64),
    )


_BySeries = dict[tuple[str, str], dict[BootKey, Point]]


def _by_series(points: Iterable[Point]) -> _BySeries:
    series: _BySeries = {}
    for point in points:
        values = series.setdefault((point.case_id, point.metric), {})
        if point.boot in values:
            raise DuplicateError(point)
        values[point.boot] = point
    return series


def _rows(
    series: _BySeries,
    cases: Sequence[str],
    metrics: Sequence[str],
    sets: Sequence[tuple[int, ...]],
    number_of: Mapping[BootKey, int],
) -> tuple[list[tuple[int, int, int]], list[Point]]:
    """Return the rows of the series, and all points in their order."""
    case_of = {case_id: n for n, case_id in enumerate(cases)}
    metric_of = {metric: n for n, metric in enumerate(metrics)}
    set_of = {boots: n for n, boots in enumerate(sets)}
    rows, ordered = [], []
    for case_id, metric in sorted(series):
        values = series[case_id, metric]
        boots = sorted(values)
        numbers = tuple(number_of[boot] for boot in boots)
        rows.append((case_of[case_id], metric_of[metric], set_of[numbers]))
        ordered += [values[boot] for boot in boots]
    return rows, ordered


def path_of(folder: Path, rack: str, run_id: str) -> Path:
    """Return where a run is kept."""
    return folder / rack / f"{run_id}.json"


def append(folder: Path, segment: Segment) -> bool:
    """Write a run's file; return False where it is there already, byte for byte.

    Raises:
        ConfigError: the run is there with other content.
        RigError: the disk does not take it.
    """
    return write_once(path_of(folder, segment.rack, segment.run_id), to_bytes(segment))


def write_once(path: Path, content: bytes) -> bool:
    """Write a file of the history, never over another; return False where it is there. Raises as append()."""
    if path.exists():
        if read_bytes(path) == content:
            return False
        raise ConfigError(
            f"{path}: the history holds this run with other content, and never changes what it holds.",
            next_step="if the run was measured anew, give it a name of its own; if the stored file is wrong, "
            "delete it by hand, and accept a new baseline where an epoch names the run.",
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
    except OSError as error:
        raise disk_error(f"could not write {path}", error, "every other run of the history") from error
    return True


def save(history: History, folder: Path) -> None:
    """Write a slice of a history (History.restricted) into a folder that load() reads as the same history.

    It is one file; the sessions keep the digests of their whole files. Raises RigError.
    """
    sessions = [_dump({**to_json(segment), "digest": segment.digest}) for segment in _segments_of(history)]
    text = f'{{"schema": {SCHEMA_VERSION},\n"sessions": [\n' + ",\n".join(sessions) + "\n]}\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(folder / SLICE, text.encode())
    except OSError as error:
        raise disk_error(f"could not write {folder / SLICE}", error, "the history itself") from error


def _segments_of(history: History) -> Iterator[Segment]:
    points: dict[int, list[Point]] = {}
    rulers: dict[int, dict[tuple[str, str], dict[str, str]]] = {}
    for entry in history.entries.values():
        for session, point, ruler in _points_of(entry):
            points.setdefault(session, []).append(point)
            known = rulers.setdefault(session, {}).setdefault((point.role, point.sha256), {})
            known[bench_of(point.case_id)] = ruler
    for number, its in enumerate(history.sessions):
        head = {key: getattr(its, key) for key in HEAD}
        segment = build(head, _boards(its), _images(its, rulers.get(number, {})), points.get(number, ()))
        yield replace(segment, digest=its.digest)


def _points_of(entry: SeriesHistory) -> Iterator[tuple[int, Point, str]]:
    """Yield session, value and ruler of each boot of a series."""
    _rack, board, case_id, metric = entry.name
    for row in range(len(entry)):
        session = int(entry.session[row])
        point = Point(
            board=board,
            role=entry.role,
            index=int(entry.boot[row]),
            sha256=str(entry.firmware[row]),
            case_id=case_id,
            metric=metric,
            value=float(entry.value[row]),
            samples=int(entry.samples[row]),
            hits=int(entry.hits[row]),
        )
        yield session, point, str(entry.ruler[row])


def _boards(session: Session) -> list[SegmentBoard]:
    found = []
    for board_id, board in session.boards.items():
        own = {
            key.removeprefix(f"{board_id}."): fact
            for key, fact in session.conditions.items()
            if key.startswith(f"{board_id}.")
        }
        found.append(SegmentBoard(board_id, board.target, board.kind, own))
    return found


def _images(session: Session, rulers: Mapping[tuple[str, str], Mapping[str, str]]) -> list[Image]:
    found = []
    for key, sha256 in session.firmware.items():
        role, _, name = key.partition(" ")
        found.append(Image(role, name, sha256, rulers.get((role, sha256), {})))
    return found


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
