# SPDX-License-Identifier: Apache-2.0
"""The test on shares of failures (loss, timeouts), which come in bursts.

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
from dataclasses import dataclass
from typing import NamedTuple

from hil.base import special
from hil.gate.decision import Design, Effect, Evidence, Seen, decide

_HIGHEST_Z = 37.0
_KNOWN_FREEDOM = 1000.0


class Count(NamedTuple):
    """What failed among so many trials."""

    hits: float
    trials: float

    @property
    def share(self) -> float:
        return self.hits / self.trials if self.trials else math.nan


class Tallies(NamedTuple):
    """The boots of one board, a count each; a boot without a trial is none."""

    candidate: Sequence[Count]
    other: Sequence[Count]


def look_at_counts(boards: Sequence[Tallies], design: Design, number: int) -> Seen:
    """Return what the boots up to look ``number`` (from 1) say, and what that decides.

    ``tolerance`` and ``min_effect`` are differences of shares. ``worse`` and ``better`` are normal quantiles
    of exact tests, so that they need not be ``difference`` over ``error``.
    """
    boards = [Tallies(*([one for one in side if one.trials > 0] for side in board)) for board in boards]
    known = [board for board in boards if board.candidate and board.other]
    if not known:
        return decide(Evidence(effects=(Effect(),) * len(boards)), design, number)
    dispersion, freedom = _pooled(known)
    both = _Both.of([(total(board.candidate), total(board.other)) for board in known], dispersion)
    evidence = Evidence(
        difference=both.difference,
        error=both.error,
        worse=both.worse(),
        better=both.better(),
        within=both.within(design.tolerance),
        freedom=freedom,
        boots=(sum(len(board.candidate) for board in known), sum(len(board.other) for board in known)),
        effects=tuple(_effect(board, dispersion) for board in boards),
    )
    return decide(evidence, design, number)


def total(boots: Iterable[Count]) -> Count:
    """Return all trials together."""
    counted = list(boots)
    return Count(math.fsum(one.hits for one in counted), math.fsum(one.trials for one in counted))


def _pooled(boards: Sequence[Tallies]) -> tuple[float, float]:
    """Return the dispersion of all boots, and the degrees of freedom that it is known with."""
    parts = [dispersion_of(side) for board in boards for side in board]
    square, freedom = math.fsum(part[0] for part in parts), sum(part[1] for part in parts)
    boots = [one for board in boards for side in board for one in side]
    factor = max(1.0, square / max(freedom, 1))
    if freedom:
        return factor, float(freedom)
    if any(one.hits for one in boots):
        factor = max(factor, *(one.trials for one in boots))
    return factor, _KNOWN_FREEDOM


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


def _effect(board: Tallies, dispersion: float) -> Effect:
    """Return a board's difference, and its error at the common share as if one more trial had failed."""
    if not (board.candidate and board.other):
        return Effect()
    candidate, other = total(board.candidate), total(board.other)
    share = (candidate.hits + other.hits + 1.0) / (candidate.trials + other.trials + 2.0)
    per_trial = 1.0 / candidate.trials + 1.0 / other.trials
    return Effect(candidate.share - other.share, math.sqrt(dispersion * share * (1.0 - share) * per_trial))


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
        return min(max(-special.ndtri(above), -_HIGHEST_Z), _HIGHEST_Z)

    def within(self, tolerance: float) -> float:
        """Return how many errors, as they would be at the tolerance, the difference lies below it."""
        of_other = min(max(self.rate - self.ratio * tolerance, 0.0), 1.0)
        of_candidate = min(max(of_other + tolerance, 0.0), 1.0)
        shares = of_candidate, of_other
        variance = sum(p * (1.0 - p) * v for p, v in zip(shares, self.spread, strict=True))
        return (tolerance - self.difference) / math.sqrt(variance) if variance > 0.0 else -_HIGHEST_Z
