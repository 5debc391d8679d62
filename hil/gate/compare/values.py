# SPDX-License-Identifier: Apache-2.0
"""The test on values: what the boots of all boards say after a look, and whether that decides.

A boot is one observation. Each board is compared with itself, so that it is a stratum; their differences are
combined by inverse variance. The variance of a boot is the plain one of all boards and both roles, each about
its own mean: a robust one is too small where a firmware's boots have modes. The statistic is Student's,
against the boundary of its look. Values are on the metric's scale, where larger is worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from hil.base.numeric import special
from hil.gate.compare import boundaries
from hil.model import Looks

State = Literal["undecided", "pass", "regressed", "improved"]

FEWEST_BOOTS = 6  # of each role, on all boards together
ODD_LEVEL = 0.001  # how often boards that agree are taken for contradicting
LEAST_ERRORS = 2.2  # by which a regression must be more than any single board's doing
BOARD_LEVEL = 0.003  # how often a board that is like the others keeps them from passing
_SHARE_ALIKE = 0.25  # boards need not agree better than to this share of their common difference
_FAR = 1.0  # spreads of what was seen: so far beyond it lies what was not
_POWER_80 = 0.8416  # the normal quantile of 80 %
_COMMON = (4.3, 2.0)  # errors, more with fewer boards: so many, and _is_common() holds in 80 % (simulated)
_LEAST = 1e-13  # of a value: no variance is smaller than its square, so that equal values divide by something


class Boots(NamedTuple):
    """One board's boots of either role; NaN of one that says nothing, infinite of one among timeouts."""

    candidate: Sequence[float]
    other: Sequence[float]


@dataclass(frozen=True)
class Design:
    """How a comparison is decided, by an ``alpha`` and ``beta`` of its own.

    ``tolerance`` and ``min_effect`` are on the metric's scale; ``variance_floor`` is the clock's quantum
    squared over 12.
    """

    looks: Looks
    alpha: float
    beta: float
    tolerance: float
    min_effect: float
    variance_floor: float = 0.0

    def efficacy(self, number: int) -> float:
        """Return the normal boundary of *regressed* at look ``number`` (from 1)."""
        return boundaries.of_looks(self.looks, self.alpha)[number - 1]

    def futility(self, number: int) -> float:
        """Return the normal boundary of *pass* at look ``number`` (from 1)."""
        return boundaries.of_looks(self.looks, self.beta)[number - 1]


@dataclass(frozen=True)
class Effect:
    """What one board says: its difference and the error of that; NaN where it lacks boots of a role."""

    difference: float = math.nan
    error: float = math.nan


@dataclass(frozen=True)
class Seen:
    """What the boots up to a look say of a comparison; NaN where they say nothing.

    ``difference`` ± ``boundary`` × ``error`` is the repeated confidence interval of level 1 - 2 alpha;
    ``pass_bound`` the largest difference that the test of passing leaves. ``effects`` are the boards', and
    ``odd`` marks those that contradict the others; where all are, nothing can be decided. ``apart`` is the
    board that keeps the others from passing, -1 where none does. ``p`` is two-sided, of a single look.
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
    odd: tuple[bool, ...] = ()
    apart: int = -1
    p: float = math.nan

    @property
    def low(self) -> float:
        return self.difference - self.boundary * self.error

    @property
    def high(self) -> float:
        return self.difference + self.boundary * self.error


def look_at(boards: Sequence[Boots], design: Design, number: int) -> Seen:
    """Return what the boots up to look ``number`` (from 1) say, and what that decides.

    Regressed: the difference exceeds its error by the boundary, and ``min_effect``, and is no single board's
    doing. Pass: it is below ``tolerance`` by as many errors as the
    boundary of passing says, and no single board is provably worse than tolerated. Improved: it passes, and
    is provably better by more than ``min_effect``. Regressed goes first. Fewer than FEWEST_BOOTS of a role
    decide nothing, nor do boards that contradict each other.
    """
    boards = [_bounded(board, design.tolerance) for board in boards]
    spread = spread_of(boards, design.variance_floor)
    effects = tuple(_effect(board, spread) for board in boards)
    whole = combine(effects, spread.freedom, 0.5 * design.min_effect)
    if not whole.known:
        return Seen(effects=effects, odd=whole.odd)
    error = math.sqrt(whole.variance)
    boundary = student(design.efficacy(number), spread.freedom)
    below = student(design.futility(number), spread.freedom)
    enough = min(_count(boards, whole.known, role) for role in (0, 1)) >= FEWEST_BOOTS
    apart = _apart(effects, whole.odd, design.tolerance, student(z_of(BOARD_LEVEL), spread.freedom))
    seen = Seen(
        difference=whole.difference,
        error=error,
        z=whole.difference / error,
        boundary=boundary,
        pass_bound=whole.difference + below * error,
        boot_deviation=math.sqrt(spread.variance),
        smallest_effect=smallest_effect(spread.variance, len(whole.kept), design),
        effects=effects,
        odd=whole.odd,
        apart=apart,
        p=2.0 * float(special.stdtr(spread.freedom, -abs(whole.difference / error))),
    )
    if not enough or whole.contradictory or not math.isfinite(seen.z):
        return seen
    better = -seen.z > student(z_of(design.alpha), spread.freedom)
    return decided(
        seen,
        design,
        worse=seen.z > boundary and whole.is_common,
        better=better,
        within=(design.tolerance - seen.difference) / error > below,
    )


def decided(seen: Seen, design: Design, *, worse: bool, better: bool, within: bool) -> Seen:
    """Return what was seen with its state, by what the tests say: regressed goes first."""
    state: State = "undecided"
    if worse and seen.difference > design.min_effect:
        state = "regressed"
    elif within and seen.apart < 0:
        state = "improved" if better and -seen.difference > design.min_effect else "pass"
    return replace(seen, state=state)


def smallest_effect(boot_variance: float, boards: int, design: Design) -> float:
    """Return what the last planned look finds with 80 % power if boots vary so, on so many boards.

    By the normal approximation: boundary and 0.84 errors, and not below ``min_effect`` and 0.84 errors. Where
    several boards have to show it, it takes _COMMON errors or more.
    """
    look = design.looks[-1]
    error = math.sqrt(boot_variance / (boundaries.information(look) * max(boards, 1)))
    bound = student(design.efficacy(len(design.looks)), boards * (sum(look) - 2.0))
    common = _COMMON[0] + _COMMON[1] / boards if boards > 1 else 0.0
    return max((bound + _POWER_80) * error, design.min_effect + _POWER_80 * error, common * error)


def student(boundary: float, freedom: float) -> float:
    """Return what Student's t exceeds as rarely as a normal z exceeds ``boundary``."""
    return -float(special.stdtrit(max(freedom, 1.0), special.ndtr(-boundary)))


def z_of(level: float) -> float:
    return -float(special.ndtri(level))


class Spread(NamedTuple):
    """The variance of a boot, and the degrees of freedom that it is known with (Satterthwaite's)."""

    variance: float
    freedom: float


def spread_of(boards: Iterable[Boots], floor: float) -> Spread:
    """Return how boots vary about the mean of their board and role, all of them together.

    A role of a board that is noisier than the others costs degrees of freedom.
    """
    squares, freedom, largest = [], [], 1.0
    for board in boards:
        sides = [_finite(side) for side in board]
        if not all(sides):
            continue
        for side in sides:
            largest = max(largest, abs(side[0]))
            if len(side) > 1:
                squares.append(_squares(side))
                freedom.append(len(side) - 1)
    least = floor + (_LEAST * min(largest, 1e150)) ** 2
    if not freedom:
        return Spread(math.nan, 0.0)
    total, each = math.fsum(squares), math.fsum(q * q / n for q, n in zip(squares, freedom, strict=True))
    degrees = total * total / each if each > 0.0 else float(sum(freedom))
    return Spread(max(total / sum(freedom), least), degrees)


def _squares(side: Sequence[float]) -> float:
    mean = math.fsum(side) / len(side)
    return math.fsum((value - mean) * (value - mean) for value in side)


def _effect(board: Boots, spread: Spread) -> Effect:
    candidate, other = (_finite(side) for side in board)
    if not candidate or not other:
        return Effect()
    difference = math.fsum(candidate) / len(candidate) - math.fsum(other) / len(other)
    return Effect(difference, math.sqrt(spread.variance * (1.0 / len(candidate) + 1.0 / len(other))))


def _finite(side: Iterable[float]) -> list[float]:
    return [value for value in side if math.isfinite(value)]


def _count(boards: Sequence[Boots], known: Iterable[int], role: int) -> int:
    return sum(len(_finite(boards[one][role])) for one in known)


def _bounded(board: Boots, tolerance: float) -> Boots:
    """Put finite values, beyond all that the board has shown, in the place of infinite ones (timeouts).

    A board says nothing where most boots of the other role are infinite: nothing can be compared with what
    was never seen.
    """
    if not any(math.isinf(value) for side in board for value in side):
        return board
    seen = _finite((*board.candidate, *board.other))
    unseen = sum(map(math.isinf, board.other))
    if not seen or 2 * unseen > sum(not math.isnan(value) for value in board.other):
        return Boots((), ())
    reach = max(_FAR * (max(seen) - min(seen)), 2.0 * abs(tolerance))
    place = {math.inf: max(seen) + reach, -math.inf: min(seen) - reach}
    return Boots(*(tuple(place.get(value, value) for value in side) for side in board))


class Combined(NamedTuple):
    """The boards together. ``known`` are the places of those that say something, ``kept`` those that count.

    ``odd`` marks those that were left out: all that say something where they are ``contradictory``, and all
    of these count then. ``is_common`` says that a difference for the worse is no single board's doing.
    """

    difference: float
    variance: float
    is_common: bool
    known: tuple[int, ...]
    kept: tuple[int, ...]
    odd: tuple[bool, ...]
    contradictory: bool


def combine(effects: Sequence[Effect], freedom: float, alike: float) -> Combined:
    """Combine what boards say, weighted by what each knows; ``alike`` is a difference that no one minds.

    Cochran's Q asks whether they agree. A board without which the others do is odd, and left out as long as
    most boards remain; where too many would have to go, the boards contradict each other.
    """
    known = tuple(place for place, effect in enumerate(effects) if math.isfinite(effect.error))
    if not known:
        return Combined(math.nan, math.nan, False, known, known, (False,) * len(effects), False)
    kept = list(known)
    odd: list[int] = []
    while not _agree([effects[one] for one in kept], freedom, alike):
        if len(odd) >= (len(known) - 1) // 2:
            kept = odd = list(known)
            break
        worst = min(kept, key=lambda one: _q([effects[own] for own in kept if own != one], alike))
        kept.remove(worst)
        odd.append(worst)
    own = [effects[one] for one in kept]
    difference, weight = _mean(own)
    contradictory = len(odd) == len(known) > 1
    marks = tuple(place in odd for place in range(len(effects)))
    return Combined(difference, 1.0 / weight, _is_common(own), known, tuple(kept), marks, contradictory)


def _is_common(effects: Sequence[Effect]) -> bool:
    """Say whether a difference for the worse is more than any single board's doing; one board has no others.

    By the likelihood ratio of "all boards alike" to "this board alone": twice its logarithm is the square of
    the others' errors above nothing less the square of the board's above the others.
    """
    for place, board in enumerate(effects):
        others = [*effects[:place], *effects[place + 1 :]]
        if not others:
            return True
        rest, weight = _mean(others)
        if rest >= board.difference:
            continue  # without it the difference is no smaller
        apart = (board.difference - rest) ** 2 / (board.error**2 + 1.0 / weight)
        if rest <= 0.0 or rest * rest * weight - apart < LEAST_ERRORS**2:
            return False
    return True


def _mean(effects: Sequence[Effect], more: float = 0.0) -> tuple[float, float]:
    """Return the mean and its weight; each board's variance is larger by ``more``."""
    weights = [1.0 / (one.error**2 + more) for one in effects]
    total = math.fsum(weights)
    found = math.fsum(w * one.difference for w, one in zip(weights, effects, strict=True)) / total
    return found, total


def _q(effects: Sequence[Effect], alike: float) -> float:
    """Return Cochran's Q, with what boards may differ by counted among their errors."""
    more = alike**2 + (_SHARE_ALIKE * _mean(effects)[0]) ** 2
    centre, _ = _mean(effects, more)
    return math.fsum((one.difference - centre) ** 2 / (one.error**2 + more) for one in effects)


def _agree(effects: Sequence[Effect], freedom: float, alike: float) -> bool:
    """Say whether Q is not significant; one board agrees with itself."""
    degrees = len(effects) - 1
    if not degrees:
        return True
    q = _q(effects, alike)
    return not float(special.fdtrc(degrees, max(freedom, 1.0), q / degrees)) < ODD_LEVEL


def _apart(effects: Sequence[Effect], odd: Sequence[bool], tolerance: float, errors: float) -> int:
    """Return the board that is worse than the tolerance by itself, the worst of them; -1 where none is.

    It has to be provably worse than before; one that was left out is, for it contradicts the others.
    """
    several = len(effects) > 1
    found = [
        (effect.difference, place)
        for place, effect in enumerate(effects)
        if several and effect.difference > tolerance
        if odd[place] or effect.difference > errors * effect.error
    ]
    return max(found)[1] if found else -1
