# SPDX-License-Identifier: Apache-2.0
"""Writing the history: a run's file, once and for ever.

A segment is made of single boot values, in one order whatever order they come in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError
from hil.base.numeric import np
from hil.history.loading import read_bytes
from hil.history.segment import Boot, Image, Segment, SegmentBoard, to_bytes
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
            "delete it by hand.",
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
    except OSError as error:
        raise disk_error(f"could not write {path}", error, "every other run of the history") from error
    return True
