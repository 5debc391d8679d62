# SPDX-License-Identifier: Apache-2.0
"""The tests on shares of failures (loss, timeouts), which come in bursts, and on exact figures.

Failures of one boot hang together, so that they vary more between boots than independent ones would: by the
factor ``dispersion`` of the beta-binomial distribution, estimated from the boots (Pearson's chi-square over
its degrees of freedom, each board and role by itself), 1 at least. Counts are divided by it. "Worse" is then
tested exactly: of all failures, the candidate's are binomial with its share of the trials, whatever the rate,
so that one failure more is never significant. "Not worse than tolerated" is tested with the variance that
there would be at the tolerance (Farrington & Manning 1990), so that no failures at all still need trials.
Where every boot lost all or nothing, nothing tells the dispersion: a boot then counts as a single trial,
which no dispersion exceeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from hil.base.numeric import special
from hil.gate.compare import boundaries
from hil.gate.compare.values import (
    BOARD_LEVEL,
    Boots,
    Design,
    Effect,
    Seen,
    combine,
    decided,
    student,
    z_of,
)

_POWER_80 = 0.8416
_HIGHEST_Z = 37.0
_BISECTIONS = 30  # halvings of 1: to a share of 1e-9
_KNOWN_FREEDOM = 1000.0


class Count(NamedTuple):
    """What failed among so many trials."""

    hits: float
    trials: float

    def and_(self, other: Count) -> Count:
        return Count(self.hits + other.hits, self.trials + other.trials)

    @property
    def share(self) -> float:
        return self.hits / self.trials if self.trials else math.nan


class Tallies(NamedTuple):
    """The boots of one board, a count each; a boot without a trial is none."""

    candidate: Sequence[Count]
    other: Sequence[Count]


def look_at_counts(boards: Sequence[Tallies], design: Design, number: int) -> Seen:
    """Return what the boots up to look ``number`` (from 1) say, as look_at() does.

    ``tolerance`` and ``min_effect`` are differences of shares. ``z`` is the normal quantile of the exact
    test, so that it need not be ``difference`` over ``error``.
    """
    boards = [Tallies(*([one for one in side if one.trials > 0] for side in board)) for board in boards]
    totals = [Tallies([total(board.candidate)], [total(board.other)]) for board in boards]
    known = [one for one, board in enumerate(boards) if board.candidate and board.other]
    if not known:
        return Seen(effects=(Effect(),) * len(boards), odd=(False,) * len(boards))
    pooled = _pooled([boards[one] for one in known])
    effects = [
        _effect(totals[one].candidate[0], totals[one].other[0], pooled.dispersion)
        if one in known
        else Effect()
        for one in range(len(boards))
    ]
    whole = combine(effects, pooled.freedom, 0.5 * design.min_effect)
    both = _Both.of(
        [(totals[one].candidate[0], totals[one].other[0]) for one in whole.kept], pooled.dispersion
    )
    boundary, below = (
        student(at, pooled.freedom) for at in (design.efficacy(number), design.futility(number))
    )
    worst = max(known, key=lambda one: effects[one].difference)
    worse, better = both.worse(), both.better()
    seen = Seen(
        difference=both.difference,
        error=both.error,
        z=worse,
        boundary=boundary,
        pass_bound=both.bound(below),
        smallest_effect=_smallest_effect(both, design, number, pooled.freedom),
        effects=tuple(effects),
        odd=whole.odd,
        apart=worst if _is_apart(boards[worst], effects[worst], whole.odd[worst], len(known), design) else -1,
        p=min(1.0, 2.0 * float(special.ndtr(-max(worse, better)))),
    )
    if whole.contradictory:
        return seen
    return decided(
        seen,
        design,
        worse=worse > boundary and whole.is_common,
        better=better > student(z_of(design.alpha), pooled.freedom),
        within=both.within(design.tolerance) > below,
    )


def look_at_exact(boards: Sequence[Boots], design: Design) -> tuple[Seen, bool]:
    """Decide about figures without noise, in the metric's unit; say too whether they are exact at all.

    Growth beyond the tolerance on any board regresses; a decrease by more than ``min_effect`` on all boards
    improves. What varies between the boots of one role and board, or is infinite, is no exact figure.
    """
    sides = [[sorted({v for v in side if not math.isnan(v)}) for side in board] for board in boards]
    there = [all(pair) for pair in sides]
    steady = [len(one) == len(two) == 1 and math.isfinite(one[0] - two[0]) for one, two in sides]
    effects = tuple(
        Effect(pair[0][0] - pair[1][0], 0.0) if fine else Effect()
        for pair, fine in zip(sides, steady, strict=True)
    )
    found = [one.difference for one in effects if not math.isnan(one.difference)]
    seen = Seen(effects=effects, odd=(False,) * len(boards))
    if not any(there):
        return seen, True
    exact = all(fine for fine, some in zip(steady, there, strict=True) if some)
    if found:
        worst = max(found)
        seen = replace(
            seen, difference=worst, error=0.0, boundary=0.0, smallest_effect=max(design.tolerance, 0.0)
        )
        if worst > design.tolerance:
            return replace(seen, state="regressed"), True
        if exact:
            return replace(seen, state="improved" if -worst > design.min_effect else "pass"), True
    return seen, exact


def total(boots: Iterable[Count]) -> Count:
    """Return all trials together."""
    found = Count(0.0, 0.0)
    for one in boots:
        found = found.and_(one)
    return found


class _Pooled(NamedTuple):
    dispersion: float
    freedom: float


def _pooled(boards: Sequence[Tallies]) -> _Pooled:
    """Return the dispersion of all boots, and the degrees of freedom that it is known with."""
    parts = [dispersion_of(side) for board in boards for side in board]
    square, freedom = math.fsum(part[0] for part in parts), sum(part[1] for part in parts)
    boots = [one for board in boards for side in board for one in side]
    factor = max(1.0, square / max(freedom, 1))
    if freedom:
        return _Pooled(factor, float(freedom))
    if any(one.hits for one in boots):
        factor = max(factor, *(one.trials for one in boots))
    return _Pooled(factor, _KNOWN_FREEDOM)


def dispersion_of(boots: Sequence[Count]) -> tuple[float, int]:
    """Return Pearson's chi-square of boots about their common share, and its degrees of freedom.

    Both are 0 where nothing failed, or everything: that says nothing of how failures hang together.
    """
    share = total(boots).share if boots else 0.0
    variance = share * (1.0 - share)
    if not variance > 0.0:
        return 0.0, 0
    square = math.fsum((one.hits - one.trials * share) ** 2 / (one.trials * variance) for one in boots)
    return square, len(boots) - 1


def _effect(candidate: Count, other: Count, dispersion: float) -> Effect:
    """Return a board's difference, and its error at the common share as if one more trial had failed."""
    share = (candidate.hits + other.hits + 1.0) / (candidate.trials + other.trials + 2.0)
    per_trial = 1.0 / candidate.trials + 1.0 / other.trials
    return Effect(candidate.share - other.share, math.sqrt(dispersion * share * (1.0 - share) * per_trial))


def _is_apart(board: Tallies, effect: Effect, odd: bool, boards: int, design: Design) -> bool:
    """Say whether a board keeps the others from passing: worse than the tolerance by itself, provably."""
    if boards < 2 or not effect.difference > design.tolerance:
        return False
    pooled = _pooled([board])
    alone = _Both.of([(total(board.candidate), total(board.other))], pooled.dispersion)
    return odd or alone.worse() > student(z_of(BOARD_LEVEL), pooled.freedom)


@dataclass(frozen=True)
class _Both:
    """The boards that count, together: Mantel and Haenszel's difference, and what the tests need.

    ``chance`` is that a failure is the candidate's where both fail alike; ``spread`` the variance of the
    difference over p (1 - p), of either role; ``ratio`` the candidate's share of all trials.
    """

    difference: float
    error: float
    hits: tuple[float, float]
    chance: float
    spread: tuple[float, float]
    ratio: float
    rate: float
    dispersion: float

    @classmethod
    def of(cls, boards: Sequence[tuple[Count, Count]], dispersion: float) -> _Both:
        weights = [one.trials * two.trials / (one.trials + two.trials) for one, two in boards]
        weight = math.fsum(weights)
        sides = [[pair[role] for pair in boards] for role in (0, 1)]
        rates = [
            math.fsum(w * c.share for w, c in zip(weights, side, strict=True)) / weight for side in sides
        ]
        spread = [
            dispersion * math.fsum(w * w / c.trials for w, c in zip(weights, side, strict=True)) / weight**2
            for side in sides
        ]
        shares = [one.trials / (one.trials + two.trials) for one, two in boards]
        failed = [one.hits + two.hits for one, two in boards]
        ratio = math.fsum(w * s for w, s in zip(weights, shares, strict=True)) / weight
        chance = (
            math.fsum(f * s for f, s in zip(failed, shares, strict=True)) / sum(failed)
            if sum(failed)
            else ratio
        )
        own = [total(side) for side in sides]
        smooth = [(one.hits + 1.0) / (one.trials + 2.0) for one in own]
        error = math.sqrt(sum(p * (1.0 - p) * v for p, v in zip(smooth, spread, strict=True)))
        rate = ratio * rates[0] + (1.0 - ratio) * rates[1]
        hits = own[0].hits, own[1].hits
        return cls(rates[0] - rates[1], error, hits, chance, (spread[0], spread[1]), ratio, rate, dispersion)

    def worse(self) -> float:
        return self._exact(self.hits[0], self.hits[1], self.chance)

    def better(self) -> float:
        return self._exact(self.hits[1], self.hits[0], 1.0 - self.chance)

    def _exact(self, own: float, others: float, chance: float) -> float:
        """Return the normal quantile of P(as many failures or more on this side), over the dispersion."""
        if not own > 0:
            return -_HIGHEST_Z
        above = special.betainc(own / self.dispersion, others / self.dispersion + 1.0, min(max(chance, 0), 1))
        return min(max(-float(special.ndtri(above)), -_HIGHEST_Z), _HIGHEST_Z)

    def within(self, tolerance: float) -> float:
        """Return how many errors, as they would be at the tolerance, the difference lies below it."""
        of_other = min(max(self.rate - self.ratio * tolerance, 0.0), 1.0)
        of_candidate = min(max(of_other + tolerance, 0.0), 1.0)
        shares = of_candidate, of_other
        variance = sum(p * (1.0 - p) * v for p, v in zip(shares, self.spread, strict=True))
        return (tolerance - self.difference) / math.sqrt(variance) if variance > 0.0 else -_HIGHEST_Z

    def bound(self, errors: float) -> float:
        """Return the largest difference that does not lie so many errors above this one, by within()."""
        low, high = min(max(self.difference, 0.0), 1.0), 1.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2.0
            low, high = (low, middle) if self.within(middle) > errors else (middle, high)
        return high


def _smallest_effect(both: _Both, design: Design, number: int, freedom: float) -> float:
    """Return what the last planned look finds with 80 % power, by the normal approximation."""
    now, end = (boundaries.information(look) for look in (design.looks[number - 1], design.looks[-1]))
    error = both.error * math.sqrt(now / max(now, end))
    bound = student(design.efficacy(len(design.looks)), freedom)
    return max(bound * error, design.min_effect) + _POWER_80 * error
