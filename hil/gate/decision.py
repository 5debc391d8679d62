# SPDX-License-Identifier: Apache-2.0
"""The rule that decides: what a test saw at a look, set against its boundaries.

Every test (of values, of counts) says the same things of a comparison; what follows from them stands here.
All differences are on the metric's scale, where larger is worse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hil.base import special
from hil.gate import boundaries
from hil.model import Looks

State = Literal["undecided", "pass", "regressed", "improved"]

FEWEST_BOOTS = 6  # of each role, on all boards together
SLOW_SHARE = 0.1  # of the candidate's boots: a pass before the last look excludes that so many are slow
_SURE = 0.05
ENOUGH_TO_PASS = math.ceil(math.log(_SURE) / math.log1p(-SLOW_SHARE))  # 29 boots
_POWER_80 = 0.8416  # the normal quantile of 80 %


@dataclass(frozen=True)
class Design:
    """How a comparison is decided, by an ``alpha`` and ``beta`` of its own.

    ``tolerance``, ``min_effect`` and ``blind_below`` are on the metric's scale; ``variance_floor`` is the
    clock's quantum squared over 12.
    """

    looks: Looks
    alpha: float
    beta: float
    tolerance: float
    min_effect: float
    blind_below: float = 0.0
    variance_floor: float = 0.0


@dataclass(frozen=True)
class Effect:
    """What one board says: its difference and the error of that; NaN where it lacks boots of a role."""

    difference: float = math.nan
    error: float = math.nan


@dataclass(frozen=True)
class Evidence:
    """What a test says of a comparison: NaN where it says nothing.

    ``worse`` and ``better`` are how many errors the difference lies above and below none, ``within`` how many
    below the tolerance, ``freedom`` how well the error is known. ``boots`` are those of candidate and other.
    """

    difference: float = math.nan
    error: float = math.nan
    worse: float = math.nan
    better: float = math.nan
    within: float = math.nan
    freedom: float = 1.0
    boots: tuple[int, int] = (0, 0)
    effects: tuple[Effect, ...] = ()
    boot_deviation: float = math.nan


@dataclass(frozen=True)
class Seen:
    """What the boots up to a look say of a comparison, and what that decides.

    ``difference`` ± ``boundary`` × ``error`` is the repeated confidence interval of level 1 - 2 alpha.
    ``smallest_effect`` would have been seen in four of five such looks. ``apart`` is the board that keeps the
    others from passing, -1 where none does. ``p`` is two-sided, of a single look. ``wanted`` is how many
    times the boots of this look would decide; NaN where nobody knows.
    """

    state: State = "undecided"
    difference: float = math.nan
    error: float = math.nan
    z: float = math.nan
    boundary: float = math.nan
    pass_bound: float = math.nan
    boot_deviation: float = math.nan
    smallest_effect: float = math.nan
    effects: tuple[Effect, ...] = ()
    apart: int = -1
    p: float = math.nan
    wanted: float = math.nan

    @property
    def low(self) -> float:
        return self.difference - self.boundary * self.error

    @property
    def high(self) -> float:
        return self.difference + self.boundary * self.error


def decide(evidence: Evidence, design: Design, number: int) -> Seen:
    """Return what look ``number`` (from 1) comes to. Regressed goes first.

    Regressed: worse beyond the boundary, and by more than ``min_effect``. Pass: no board is apart, and either
    the tolerance is excluded, or the last look shows no sign of a change (less than ``beta`` would by chance)
    and would have seen ``blind_below``. Before the last look a pass takes ENOUGH_TO_PASS boots of the
    candidate. Improved: it passes, and is better by the mirrored tests.
    """
    freedom, error = evidence.freedom, evidence.error
    boundary, below = (  # of regressed, and of pass
        student(boundaries.of_looks(design.looks, level)[number - 1], freedom)
        for level in (design.alpha, design.beta)
    )
    seen = Seen(
        difference=evidence.difference,
        error=error,
        z=evidence.worse,
        boundary=boundary,
        pass_bound=_bound(evidence, design.tolerance, below),
        boot_deviation=evidence.boot_deviation,
        smallest_effect=max(boundary * error, design.min_effect) + _POWER_80 * error,
        effects=evidence.effects,
        apart=_apart(evidence.effects, design.tolerance, boundary),
        p=_p_of(max(evidence.worse, evidence.better), freedom),
    )
    if min(evidence.boots) < FEWEST_BOOTS or not math.isfinite(evidence.worse):
        return seen
    is_last = number == len(design.looks)
    no_sign = evidence.worse < student(z_of(design.beta), freedom)
    sees_enough = seen.smallest_effect <= design.blind_below
    enough = is_last or evidence.boots[0] >= ENOUGH_TO_PASS
    state: State = "undecided"
    if evidence.worse > boundary and evidence.difference > design.min_effect:
        state = "regressed"
    elif enough and seen.apart < 0 and (evidence.within > below or (is_last and no_sign and sees_enough)):
        better = evidence.better > student(z_of(design.alpha), freedom)
        state = "improved" if better and -evidence.difference > design.min_effect else "pass"
    return replace(seen, state=state, wanted=_wanted(seen, design, below, no_sign=no_sign))


def _bound(evidence: Evidence, tolerance: float, below: float) -> float:
    """Return the largest difference that the test of passing leaves."""
    bound = evidence.difference + below * evidence.error
    return min(bound, tolerance) if evidence.within > below else bound


def _p_of(z: float, freedom: float) -> float:
    return math.nan if math.isnan(z) else min(1.0, 2.0 * special.stdtr(max(freedom, 1.0), -z))


def excluded_share(boots: int) -> float:
    """Return the least share of slow boots of which so many boots would have had one, with 95 %."""
    return 1.0 - _SURE ** (1.0 / boots) if boots else 1.0


def student(boundary: float, freedom: float) -> float:
    """Return what Student's t exceeds as rarely as a normal z exceeds ``boundary``."""
    return -special.stdtrit(max(freedom, 1.0), special.ndtr(-boundary))


def z_of(level: float) -> float:
    return -special.ndtri(level)


def _apart(effects: Sequence[Effect], tolerance: float, boundary: float) -> int:
    """Return the board that is worse than the tolerance by itself, the worst of them; -1 where none is.

    It has to be provably worse than before, as all boards together have to.
    """
    found = [
        (effect.difference, place)
        for place, effect in enumerate(effects)
        if effect.difference > max(tolerance, boundary * effect.error)
    ]
    return max(found)[1] if found and len(effects) > 1 else -1


def _wanted(seen: Seen, design: Design, below: float, *, no_sign: bool) -> float:
    """Return how many times these boots would prove this difference, or exclude the tolerance: the fewer.

    Where there is no sign of a change, it is enough that ``blind_below`` would be seen.
    """
    errors = [(design.tolerance - seen.difference) / (below + _POWER_80)]
    if seen.difference > design.min_effect:
        errors.append(seen.difference / (seen.boundary + _POWER_80))
    if no_sign:
        errors.append(design.blind_below / (seen.boundary + _POWER_80))
    return (seen.error / max(errors)) ** 2 if max(errors) > 0.0 else math.nan
