# SPDX-License-Identifier: Apache-2.0
"""A run's boot values as the history keeps them, made of single values: in one order, whatever order they
come in.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hil.history.summary import BootedImage, Boots, BootValues, MeasuredBoard, SeriesColumns

SIGNIFICANT_DIGITS = 10

BootKey = tuple[str, int, str, str]  # board, boot index, role, SHA-256 of the image


@dataclass(frozen=True)
class BootPoint:
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

    def __init__(self, point: BootPoint) -> None:
        super().__init__(f"{point.role} boot {point.index} of board {point.board} has {point.case_id} twice")


def build(
    boards: Iterable[MeasuredBoard], images: Iterable[BootedImage], points: Iterable[BootPoint]
) -> BootValues:
    """Return the boot values that hold ``points``.

    Raises:
        DuplicateError: two values of one boot.
        ValueError: a value is NaN or minus infinity.
    """
    series = _by_series(points)
    boots = sorted({boot for values in series.values() for boot in values})
    known_boards = sorted(boards, key=lambda board: board.id)
    known_images = sorted(images, key=lambda image: (image.role, image.name, image.sha256))
    board_of = {board.id: n for n, board in enumerate(known_boards)}
    image_of = {(str(image.role), image.sha256): n for n, image in enumerate(known_images)}
    cases = sorted({case_id for case_id, _ in series})
    metrics = sorted({metric for _, metric in series})
    number_of = {boot: n for n, boot in enumerate(boots)}
    sets = sorted({tuple(sorted(number_of[boot] for boot in values)) for values in series.values()})
    rows, ordered = _rows(series, cases, metrics, sets, number_of)
    return BootValues(
        boards=tuple(known_boards),
        images=tuple(known_images),
        boots=Boots(
            board=tuple(board_of[board] for board, _, _, _ in boots),
            index=tuple(index for _, index, _, _ in boots),
            image=tuple(image_of[role, sha256] for _, _, role, sha256 in boots),
        ),
        cases=tuple(cases),
        metrics=tuple(metrics),
        boot_sets=tuple(sets),
        series=SeriesColumns(*(tuple(column) for column in zip(*rows, strict=True)))
        if rows
        else SeriesColumns((), (), ()),
        values=tuple(_written(point.value) for point in ordered),
        samples=_run_lengths(point.samples for point in ordered),
        hits=_run_lengths(point.hits for point in ordered),
    )


def _written(value: float) -> int | float | None:
    """Return a value as JSON holds it: ten digits, whole numbers as such, None for plus infinity."""
    if value == math.inf:
        return None
    if not math.isfinite(value):
        raise ValueError(f"a boot value is {value}")
    if value == int(value) and abs(value) < 2**53:
        return int(value)
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def _run_lengths(column: Iterable[int]) -> tuple[int, ...]:
    """Return value, times, value, times, …"""
    return tuple(
        number for value, same in itertools.groupby(column) for number in (value, sum(1 for _ in same))
    )


_BySeries = dict[tuple[str, str], dict[BootKey, BootPoint]]


def _by_series(points: Iterable[BootPoint]) -> _BySeries:
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
) -> tuple[list[tuple[int, int, int]], list[BootPoint]]:
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
