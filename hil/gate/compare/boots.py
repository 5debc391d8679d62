# SPDX-License-Identifier: Apache-2.0
"""From records to the boots of each board, on the metric's scale: what counts, and what does not and why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from hil.gate.compare.environment import Check, check_board
from hil.gate.compare.pairs import Pair
from hil.gate.compare.values import Boots
from hil.metrics.boot_value import BootValue, boot_value
from hil.metrics.evaluation import Metric
from hil.metrics.values import count_voids
from hil.model import RunRecord

Values = tuple[BootValue | None, ...]

_LARGEST_LOG = 700.0  # exp() of more is no float


@dataclass(frozen=True)
class Scale:
    """The logarithm where ``relative``, else the metric's unit; ``sign`` turns it so that larger is worse."""

    relative: bool
    sign: int

    def position(self, value: float, quantum: float) -> float:
        """Return where a boot's value lies; +inf of a timeout, and of nothing where more is better.

        Less than a step of the clock is a step: it has no better logarithm. NaN where there is none at all.
        """
        if not self.relative or math.isinf(value):
            return self.sign * value
        if 0 <= value < quantum:
            return self.sign * math.log(quantum)
        if value == 0 and self.sign < 0:
            return math.inf
        return self.sign * math.log(value) if value > 0 else math.nan

    def value(self, position: float) -> float:
        """Return the value that lies there, in the metric's unit."""
        here = self.sign * position
        return math.exp(min(here, _LARGEST_LOG)) if self.relative else here

    def worse(self, effect: float) -> float:
        """Return how far a change for the worse of this size, relative or in the unit, moves a value."""
        if not self.relative:
            return effect
        return math.log1p(effect) if self.sign > 0 else -math.log1p(-min(effect, 1.0 - 1e-9))

    def change(self, difference: float) -> float:
        """Return a difference as a change of the figure: positive where it grew."""
        grown = self.sign * difference
        return math.expm1(min(grown, _LARGEST_LOG)) if self.relative else grown

    def changes(self, low: float, high: float) -> tuple[float, float]:
        """Return the bounds of a difference as those of the change, the lower one first."""
        first, second = self.change(low), self.change(high)
        return (first, second) if self.sign > 0 else (second, first)

    def size(self, difference: float) -> float:
        """Return the size of a change for the worse that moves a value so far; the inverse of worse()."""
        return abs(self.change(difference)) if math.isfinite(difference) else math.inf

    def variance_floor(self, quantum: float, values: Iterable[float]) -> float:
        """Return the least variance of a boot's value: a step of the clock, squared, over 12."""
        if not self.relative:
            return quantum**2 / 12
        known = [max(abs(value), quantum) for value in values if math.isfinite(value) and value]
        if not known or not quantum:
            return 0.0
        typical = math.exp(fmean(math.log(value) for value in known))
        return (quantum / typical) ** 2 / 12


def scale_of(metric: Metric) -> Scale:
    return Scale(metric.scale == "log", 1 if metric.direction == "lower" else -1)


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
    def sides(self) -> tuple[Values, Values]:
        return self.candidate, self.other

    @property
    def boots(self) -> tuple[int, int]:
        """How many boots of candidate and other say something."""
        return count(self.candidate), count(self.other)

    @property
    def timed_out(self) -> tuple[int, int]:
        """In how many boots of either the value fell among timeouts."""
        return _infinite(self.candidate), _infinite(self.other)

    def on(self, scale: Scale) -> Boots:
        """Return the boots on the metric's scale; NaN where a boot is not there, or has no place on it."""
        return Boots(*(tuple(_position(value, scale) for value in side) for side in self.sides))


def gather(pair: Pair) -> list[BoardBoots]:
    """Return the boots of all boards that have records. Raises ConfigError as boot_value() does."""
    boards = pair.comparison.boards
    return [
        _gather_board(pair, board) for board in boards if pair.candidate.get(board) or pair.other.get(board)
    ]


def boots_in_order(pair: Pair, board: str) -> list[tuple[int, BootValue, bool]]:
    """Return (place in the run, value, is the candidate's) of each boot of a board that says something."""
    found = [
        (record.boot_index, value, side is pair.candidate)
        for side in (pair.candidate, pair.other)
        for record in side.get(board, ())
        if (value := _value(pair, record)) is not None
    ]
    return sorted(found, key=lambda one: one[0])


def count(values: Values) -> int:
    return sum(value is not None for value in values)


def has_no_place(boards: Sequence[BoardBoots], scale: Scale) -> bool:
    """Say whether a value has no logarithm: a metric round zero is on the wrong scale."""
    return any(math.isnan(scale.position(value.value, value.quantum)) for value in known(boards))


def known(boards: Iterable[BoardBoots]) -> list[BootValue]:
    """Return every value that is there."""
    return [value for board in boards for side in board.sides for value in side if value is not None]


def _gather_board(pair: Pair, board: str) -> BoardBoots:
    sides = pair.candidate.get(board, ()), pair.other.get(board, ())
    candidate, other = (tuple(_value(pair, record) for record in side) for side in sides)
    check = check_board(pair.metric, *sides) if all(sides) else Check()
    note, lasting = _why_left_out(pair, board, (candidate, other))
    if not note and check.reason:
        note, lasting = check.reason, check.lasting
    return BoardBoots(board, candidate, other, check, note, lasting)


def _why_left_out(pair: Pair, board: str, values: tuple[Values, Values]) -> tuple[str, bool]:
    muted = pair.muted.get(board, "")
    if muted and pair.blocking:
        return muted, True
    wrong = _wrong_firmware(pair, board)
    if wrong:
        return wrong, True
    for name, side, found in zip(
        ("candidate", pair.comparison.role), (pair.candidate, pair.other), values, strict=True
    ):
        if not side.get(board):
            return f"no boot of the {name} was measured", False
        if not count(found):
            return f"no boot of the {name} counts, for too few of its samples do", False
    return "", False


def _wrong_firmware(pair: Pair, board: str) -> str:
    """Say that a boot ran something else than the comparison is about."""
    wanted = pair.comparison.candidate_sha256, pair.comparison.other_sha256
    for side, digest in zip((pair.candidate, pair.other), wanted, strict=True):
        for record in side.get(board, ()):
            if record.firmware_sha256 != digest:
                return (
                    f"its boot {record.boot_index} ran {record.firmware_sha256:.12}, not the {record.role} "
                    f"{digest:.12}"
                )
    return ""


def _value(pair: Pair, record: RunRecord) -> BootValue | None:
    """Return a boot's value; None where too many of its samples are void, or there are too few of them."""
    key = (record.board, record.boot_index)
    if key not in pair.memo:
        pair.memo[key] = _value_that_counts(pair, record)
    return pair.memo[key]


def _value_that_counts(pair: Pair, record: RunRecord) -> BootValue | None:
    policy = pair.thresholds.policy
    if count_voids(pair.metric, [record]).ratio > policy.max_void_ratio:
        return None
    value = boot_value(pair.metric, record)
    least = 1 if pair.metric.exact else policy.samples_per_boot
    return value if value is not None and value.samples >= least else None


def _infinite(values: Values) -> int:
    return sum(value is not None and math.isinf(value.value) for value in values)


def _position(value: BootValue | None, scale: Scale) -> float:
    return math.nan if value is None else scale.position(value.value, value.quantum)
