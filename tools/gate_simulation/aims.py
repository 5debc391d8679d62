# SPDX-License-Identifier: Apache-2.0
"""What the gate is to keep, as data, and whether the simulation says that it does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tools.gate_simulation.attacks import ATTACKS, BLOCKED
from tools.gate_simulation.judged import Tally
from tools.gate_simulation.racks import (
    ALONE,
    NOISY,
    QUARTER,
    RACKS,
    SLOWER,
    TENTH,
    TYPICAL,
    UNCHANGED,
    Effect,
    Rack,
)

Found = Mapping[tuple[Rack, Effect], Tally]

MOST_BLOCKED, MOST_PASSED, LEAST_HELD, LEAST_CAUGHT = 0.01, 0.05, 0.995, 0.95
BEHIND_SIMPLE = 0.03
ERRORS = 2.0  # standard errors beyond an aim that chance may make


@dataclass(frozen=True)
class Share:
    """A share of simulated pull requests, with its binomial standard error."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        return self.hits / self.of if self.of else math.nan

    @property
    def error(self) -> float:
        """Return the standard error, reckoned with one hit and one miss more."""
        share = (self.hits + 1) / (self.of + 2)
        return math.sqrt(share * (1 - share) / (self.of + 2))

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} ±{100 * self.error:.1f}" if self.of else "-"


@dataclass(frozen=True)
class Aim:
    """One promise: ``counted`` of the pull requests on some racks are so many at most, or at least."""

    words: str
    racks: tuple[Rack, ...]
    effect: Effect
    counted: str
    limit: float
    at_least: bool = False


AIMS = (
    Aim("blocked", RACKS, UNCHANGED, "blocked", MOST_BLOCKED),
    Aim("undecided", (TYPICAL,), UNCHANGED, "undecided", 0.03),
    Aim("undecided", (ALONE, NOISY), UNCHANGED, "undecided", 0.10),
    Aim("caught", (TYPICAL,), SLOWER, "caught", LEAST_CAUGHT, at_least=True),
    Aim("pass", RACKS, SLOWER, "passed", MOST_PASSED),
    Aim("pass", (TYPICAL,), QUARTER, "passed", 0.01),
    Aim("pass", (TYPICAL,), TENTH, "passed", MOST_PASSED),
)


@dataclass(frozen=True)
class Kept:
    """What came of an aim; the share lies ``beyond`` it by so much, 0 or less where it is kept."""

    words: str
    said: str
    beyond: float
    error: float

    @property
    def missed(self) -> bool:
        return self.beyond > ERRORS * self.error

    def __str__(self) -> str:
        state = "missed" if self.missed else "kept" if self.beyond <= 0 else "kept within the error"
        return f"{state:21}  {self.words}: {self.said}"


def kept(found: Found) -> list[Kept]:
    """Return every aim that the rows at hand tell of."""
    return [*_of_shares(found), *_beside_simple(found), *_of_intervals(found)]


def _of_shares(found: Found) -> Iterator[Kept]:
    for aim in AIMS:
        for rack in aim.racks:
            if (tally := found.get((rack, aim.effect))) is not None:
                share = Share(getattr(tally, aim.counted), tally.of)
                side = "at least" if aim.at_least else "at most"
                words = f"{rack.name}, {aim.effect.name}: {side} {100 * aim.limit:g} % {aim.words}"
                beyond = aim.limit - share.value if aim.at_least else share.value - aim.limit
                yield Kept(words, f"{share} %", beyond, share.error)


def _beside_simple(found: Found) -> Iterator[Kept]:
    """Compare what is caught with the simple rule, where that blocks no more than it may."""
    for rack in RACKS:
        usual, slower = found.get((rack, UNCHANGED)), found.get((rack, SLOWER))
        if usual is None or slower is None or usual.simple > MOST_BLOCKED * usual.of:
            continue
        ours, theirs = Share(slower.caught, slower.of), Share(slower.simple, slower.of)
        words = f"{rack.name}, {SLOWER.name}: caught within {100 * BEHIND_SIMPLE:g} points of the simple rule"
        behind = theirs.value - ours.value
        differ = 2 * slower.lost - (slower.simple - slower.caught)  # pull requests: both judge the same
        error = math.sqrt(differ + 1) / slower.of
        yield Kept(words, f"{ours} %, the simple rule {theirs} %", behind - BEHIND_SIMPLE, error)


def _of_intervals(found: Found) -> Iterator[Kept]:
    for rack in RACKS:
        own = [tally for (one, _effect), tally in found.items() if one == rack]
        share = Share(sum(one.held for one in own), sum(one.intervals for one in own))
        if share.of:
            words = f"{rack.name}: at least {100 * LEAST_HELD:g} % of printed intervals hold what is true"
            yield Kept(words, f"{share} %", LEAST_HELD - share.value, share.error)


def kept_by_attacks(right: Sequence[int], attempts: int) -> list[Kept]:
    """Return whether each attack is blocked whenever it is tried; AIMS say how often the others may pass."""
    return [
        Kept(f"{attack.name}: blocked", f"{hits} of {attempts}", 1 - hits / attempts, 0.0)
        for attack, hits in zip(ATTACKS, right, strict=True)
        if attack.right == BLOCKED
    ]
