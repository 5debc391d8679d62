# SPDX-License-Identifier: Apache-2.0
"""From records to boot values by board and role: what counts, and what does not and why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hil.gate.compare.environment import Check, check_board
from hil.gate.compare.scale import Scale
from hil.gate.compare.units import Unit
from hil.metrics.boot_value import BootValue, boot_value
from hil.metrics.values import count_voids
from hil.model import RunRecord

Values = tuple[BootValue | None, ...]


@dataclass(frozen=True)
class BoardBoots:
    """The boots of one board in their order; None where one says nothing.

    ``note`` is why the board does not count, "" where it does. Where ``lasting``, more boots do not mend it.
    """

    board: str
    candidate: Values
    other: Values
    check: Check
    note: str = ""
    lasting: bool = False

    @property
    def counts(self) -> bool:
        return not self.note

    @property
    def boots(self) -> tuple[int, int]:
        """How many boots of candidate and other say something."""
        return count(self.candidate), count(self.other)

    @property
    def timed_out(self) -> tuple[int, int]:
        """In how many boots of either the value fell among timeouts."""
        return _infinite(self.candidate), _infinite(self.other)


def gather(unit: Unit) -> list[BoardBoots]:
    """Return the boots of all boards that have records. Raises ConfigError as boot_value() does."""
    return [_gather_board(unit, board) for board in unit.comparison.boards if _has_records(unit, board)]


def boots_in_order(unit: Unit, board: str) -> list[tuple[int, BootValue, bool]]:
    """Return (place in the run, value, is the candidate's) of each boot of a board that says something."""
    found = [
        (record.boot_index, value, side is unit.candidate)
        for side in (unit.candidate, unit.other)
        for record in side.get(board, ())
        if (value := _value(unit, record)) is not None
    ]
    return sorted(found, key=lambda one: one[0])


def count(values: Values) -> int:
    return sum(value is not None for value in values)


def positions(boards: Sequence[BoardBoots], scale: Scale) -> tuple[np.ndarray, np.ndarray]:
    """Return candidate and other, (1, B, K) each, on the metric's scale; NaN where a boot is not there."""
    return (
        _array([board.candidate for board in boards], scale),
        _array([board.other for board in boards], scale),
    )


def has_no_place(boards: Sequence[BoardBoots], scale: Scale) -> bool:
    """Say whether a value has no logarithm: a metric round zero is on the wrong scale."""
    return any(math.isnan(scale.position(value.value, value.quantum)) for value in known(boards))


def known(boards: Iterable[BoardBoots]) -> list[BootValue]:
    """Return every value that is there."""
    return [value for board in boards for value in (*board.candidate, *board.other) if value is not None]


def _has_records(unit: Unit, board: str) -> bool:
    return bool(unit.candidate.get(board) or unit.other.get(board))


def _gather_board(unit: Unit, board: str) -> BoardBoots:
    sides = unit.candidate.get(board, ()), unit.other.get(board, ())
    candidate, other = (tuple(_value(unit, record) for record in side) for side in sides)
    check = check_board(unit.metric, *sides) if all(sides) else Check()
    note, lasting = _why_left_out(unit, board, (candidate, other))
    if not note and check.reason:
        note, lasting = check.reason, check.lasting
    return BoardBoots(board, candidate, other, check, note, lasting)


def _why_left_out(unit: Unit, board: str, values: tuple[Values, Values]) -> tuple[str, bool]:
    muted = unit.muted.get(board, "")
    if muted and unit.blocking:
        return muted, True
    wrong = _wrong_firmware(unit, board)
    if wrong:
        return wrong, True
    for name, side, found in zip(
        ("candidate", unit.comparison.role), (unit.candidate, unit.other), values, strict=True
    ):
        if not side.get(board):
            return f"no boot of the {name} was measured", False
        if not count(found):
            return f"no boot of the {name} counts, for too few of its samples do", False
    return "", False


def _wrong_firmware(unit: Unit, board: str) -> str:
    """Say that a boot ran something else than the comparison is about."""
    wanted = unit.comparison.candidate_sha256, unit.comparison.other_sha256
    for side, digest in zip((unit.candidate, unit.other), wanted, strict=True):
        for record in side.get(board, ()):
            if record.firmware_sha256 != digest:
                return (
                    f"its boot {record.boot_index} ran {record.firmware_sha256:.12}, not the {record.role} "
                    f"{digest:.12}"
                )
    return ""


def _value(unit: Unit, record: RunRecord) -> BootValue | None:
    """Return a boot's value; None where too many of its samples are void, or there are too few of them."""
    key = (record.board, record.boot_index)
    if key not in unit.memo:
        unit.memo[key] = _value_that_counts(unit, record)
    return unit.memo[key]


def _value_that_counts(unit: Unit, record: RunRecord) -> BootValue | None:
    policy = unit.thresholds.policy
    if count_voids(unit.metric, [record]).ratio > policy.max_void_ratio:
        return None
    value = boot_value(unit.metric, record)
    least = 1 if unit.metric.exact else policy.samples_per_boot
    return value if value is not None and value.samples >= least else None


def _infinite(values: Values) -> int:
    return sum(value is not None and math.isinf(value.value) for value in values)


def _array(sides: Sequence[Values], scale: Scale) -> np.ndarray:
    longest = max((len(values) for values in sides), default=0)
    array = np.full((1, len(sides), longest), np.nan)
    for row, values in enumerate(sides):
        for column, value in enumerate(values):
            if value is not None:
                array[0, row, column] = scale.position(value.value, value.quantum)
    return array
