# SPDX-License-Identifier: Apache-2.0
"""From records to the boots of each board, on the metric's scale: what counts, and what does not and why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple

from hil.gate import fit
from hil.gate.pairs import ComparedPair
from hil.gate.surroundings import Band, Check, check_band, combined
from hil.metrics.boot_value import BootValue, boot_value
from hil.metrics.metric import Metric
from hil.metrics.values import count_voids
from hil.model import RunRecord

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


class OneBoot(NamedTuple):
    """A boot that counts, ``place`` in the board's order; ``slot`` is where its image lay, "" if unknown."""

    place: int
    is_candidate: bool
    value: BootValue
    slot: str = ""


@dataclass(frozen=True)
class BoardBoots:
    """The boots of one board that count, in their order.

    ``left_out`` says of further boots why they do not. ``note`` is why the board does not count, "" where it
    does. Where ``lasting``, more boots do not mend it.
    """

    board: str
    all: tuple[OneBoot, ...]
    check: Check
    left_out: str = ""
    note: str = ""
    lasting: bool = False

    @property
    def counts(self) -> bool:
        return not self.note

    @property
    def sides(self) -> tuple[list[BootValue], list[BootValue]]:
        """The values of candidate and other."""
        candidate, other = (
            [boot.value for boot in self.all if boot.is_candidate is own] for own in (True, False)
        )
        return candidate, other

    @property
    def boots(self) -> tuple[int, int]:
        """How many boots of candidate and other count."""
        candidate, other = self.sides
        return len(candidate), len(other)

    @property
    def timed_out(self) -> tuple[int, int]:
        """In how many boots of either the value fell among timeouts."""
        candidate, other = (sum(math.isinf(value.value) for value in side) for side in self.sides)
        return candidate, other

    def on(self, scale: Scale) -> list[fit.FittedBoot]:
        """Return the boots on the metric's scale."""
        return [
            fit.FittedBoot(
                boot.place, boot.is_candidate, scale.position(boot.value.value, boot.value.quantum), boot.slot
            )
            for boot in self.all
        ]


def gather(pair: ComparedPair) -> list[BoardBoots]:
    """Return the boots of all boards that have records. Raises ConfigError as boot_value() does."""
    return [_gather_board(pair, board) for board in pair.comparison.boards if pair.boots.by_board[board]]


def has_no_place(boards: Sequence[BoardBoots], scale: Scale) -> bool:
    """Return whether a value has no logarithm: a metric round zero is on the wrong scale."""
    return any(math.isnan(scale.position(value.value, value.quantum)) for value in known(boards))


def known(boards: Iterable[BoardBoots]) -> list[BootValue]:
    """Return every value that is there."""
    return [boot.value for board in boards for boot in board.all]


_VOID_SHARE_MOST = 0.10


def _gather_board(pair: ComparedPair, board: str) -> BoardBoots:
    sides = [side.get(board, ()) for side in pair.boots.sides]
    check = combined([pair.boots.checks.get(board, Check()), _check_voids(pair.metric, sides)])
    left_out = dict(_wrong_firmware(pair, sides))
    left_out.update((boot, why) for boot, why in check.left_out.items() if boot not in left_out)
    found = []
    for side, is_candidate in zip(sides, (True, False), strict=True):
        for record in side:
            if record.boot_index in left_out:
                continue
            value = _value(pair, record)
            if value is None:
                left_out[record.boot_index] = "too few of its samples count"
            else:
                found.append(OneBoot(record.boot_index, is_candidate, value, _slot(record)))
    boots = tuple(sorted(found, key=lambda boot: boot.place))
    muted = pair.muted.get(board, "") if pair.blocking else ""
    note = muted or _why_not(pair, sides, boots, left_out)
    return BoardBoots(board, boots, check, "" if note else _in_words(left_out), note, lasting=bool(muted))


def _why_not(
    pair: ComparedPair,
    sides: Sequence[Sequence[RunRecord]],
    boots: Sequence[OneBoot],
    left_out: Mapping[int, str],
) -> str:
    """Explain why a board does not count: a role has no boot there, or none that counts."""
    for name, side, is_candidate in zip(
        ("candidate", pair.comparison.role), sides, (True, False), strict=True
    ):
        if not side:
            return f"no boot of the {name} was measured"
        if not any(boot.is_candidate is is_candidate for boot in boots):
            return f"no boot of the {name} counts: {left_out[side[0].boot_index]}"
    return ""


def _in_words(left_out: Mapping[int, str]) -> str:
    """Return "boot 3: the channel 11 (else 6)", each reason once with its boots."""
    reasons: dict[str, list[int]] = {}
    for boot, why in sorted(left_out.items()):
        reasons.setdefault(why, []).append(boot)
    return ", ".join(
        f"boot{'s' * (len(boots) > 1)} {' '.join(map(str, boots))}: {why}" for why, boots in reasons.items()
    )


def _wrong_firmware(pair: ComparedPair, sides: Sequence[Sequence[RunRecord]]) -> Iterator[tuple[int, str]]:
    """Yield the boots that ran something else than the comparison is about."""
    wanted = pair.comparison.candidate_sha256, pair.comparison.other_sha256
    for side, digest in zip(sides, wanted, strict=True):
        for record in side:
            if record.firmware_sha256 != digest:
                yield (
                    record.boot_index,
                    f"it ran {record.firmware_sha256:.12}, not the {record.role} {digest:.12}",
                )


def _check_voids(metric: Metric, sides: Sequence[Sequence[RunRecord]]) -> Check:
    """Leave out boots under which the host's scheduling was late, where it was so under one role more."""
    if metric.outcome is None or metric.outcome.void is None or not all(sides):
        return Check()
    band = Band(
        "void share", "of the samples", _VOID_SHARE_MOST, lambda record: count_voids(metric, [record]).ratio
    )
    return replace(check_band(band, (sides[0], sides[1])), passed=())


def _slot(record: RunRecord) -> str:
    return str(record.environment.get("rig", {}).get("slot") or "")


def _value(pair: ComparedPair, record: RunRecord) -> BootValue | None:
    """Return a boot's value; None where too many of its samples are void, or there is none."""
    values, key = pair.boots.values, (pair.metric.name, record.board, record.boot_index)
    if key not in values:
        is_void = count_voids(pair.metric, [record]).ratio > pair.thresholds.policy.max_void_ratio
        value = None if is_void else boot_value(pair.metric, record)
        values[key] = value if value is not None and value.samples else None
    return values[key]
