# SPDX-License-Identifier: Apache-2.0
"""Shares of failures (loss, timeouts), compared as counts that come in bursts.

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

from dataclasses import dataclass

import numpy as np
import scipy.special

from hil.gate.compare import boundaries, strata
from hil.gate.compare.boards import student_boundary
from hil.gate.compare.sequential import (
    UNDECIDED,
    Decisions,
    Design,
    Look,
    blank,
    judge,
    reach,
    write,
)

_POWER_80 = 0.8416
_HIGHEST_Z = 37.0
_BISECTIONS = 30  # halvings of 1: to a share of 1e-9
_KNOWN_FREEDOM = 1000.0


@dataclass(frozen=True)
class Counts:
    """Failures and trials, (R, B, K) each, boots by their place in the plan; NaN where one was lost."""

    hits: np.ndarray
    trials: np.ndarray

    def until(self, boots: int, rows: np.ndarray) -> Counts:
        """Return the first ``boots`` of these comparisons; a boot without a trial is none."""
        hits, trials = (np.asarray(of, dtype=float)[rows, :, :boots] for of in (self.hits, self.trials))
        there = np.isfinite(hits) & np.isfinite(trials) & (trials > 0)
        return Counts(np.where(there, hits, 0.0), np.where(there, trials, 0.0))


def decide_counts(candidate: Counts, other: Counts, design: Design) -> Decisions:
    """Go through the looks as decide() does; ``tolerance`` and ``min_effect`` are differences of shares.

    No failure in too few trials is no pass: the tolerance has to be excluded. ``z`` is the normal quantile of
    the exact test, so that it need not be ``difference`` over ``error``; the interval is difference ±
    boundary * error.
    """
    comparisons, boards = candidate.trials.shape[:2]
    found = blank(comparisons, boards)
    bounds = [
        boundaries.of_rows(_fractions(candidate, other, design), share, spending)
        for share, spending in ((design.alpha, _EFFICACY), (design.beta, _FUTILITY))
    ]
    undecided = np.ones(comparisons, dtype=bool)
    places = [reach(np.where(np.asarray(of.trials) > 0, of.trials, np.nan)) for of in (candidate, other)]
    for number, (of_candidate, of_other) in enumerate(design.looks):
        rows = np.flatnonzero(undecided & (places[0] >= of_candidate) & (places[1] >= of_other))
        if not len(rows):
            continue
        now = candidate.until(of_candidate, rows), other.until(of_other, rows)
        last = number == len(design.looks) - 1
        with np.errstate(invalid="ignore", divide="ignore"):
            look, z = _look(*now, design, [bound[rows] for bound in bounds], number)
        state = judge(look, design, last=last, z=z)
        write(found, rows, look, state, number, z=z[0])
        undecided[rows] = state == UNDECIDED
    return found


_EFFICACY: boundaries.Spending = "obrien-fleming"
_FUTILITY: boundaries.Spending = "pocock"


def dispersion_of(hits: np.ndarray, trials: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Pearson's chi-square of boots (…, K) about their common share, and its degrees of freedom.

    Both are 0 where nothing failed, or everything: that says nothing of how failures hang together.
    """
    total, of = hits.sum(axis=-1), trials.sum(axis=-1)
    share = (total / np.maximum(of, 1.0))[..., np.newaxis]
    expected = trials * share * (1.0 - share)
    varied = (expected > 0.0).any(axis=-1)
    square = np.where(
        expected > 0.0, (hits - trials * share) ** 2 / np.where(expected > 0.0, expected, 1.0), 0.0
    )
    freedom = np.where(varied, np.maximum((trials > 0).sum(axis=-1) - 1.0, 0.0), 0.0)
    return np.asarray(square.sum(axis=-1)), np.asarray(freedom)


def _dispersion(candidate: Counts, other: Counts) -> tuple[np.ndarray, np.ndarray]:
    """Return the dispersion (R,) and the degrees of freedom that it is known with."""
    parts = [dispersion_of(of.hits, of.trials) for of in (candidate, other)]
    square, freedom = (sum(part[at].sum(axis=1) for part in parts) for at in (0, 1))
    factor = np.maximum(1.0, square / np.maximum(freedom, 1.0))
    failed = candidate.hits.sum(axis=(1, 2)) + other.hits.sum(axis=(1, 2)) > 0
    # all or nothing in every boot: nothing says how failures hang together, so each boot counts as one trial
    untold = failed & (freedom == 0.0)
    factor = np.where(untold, np.maximum(factor, _trials_per_boot(candidate, other)), factor)
    return factor, np.where(~failed | untold, _KNOWN_FREEDOM, np.maximum(freedom, 1.0))


def _trials_per_boot(candidate: Counts, other: Counts) -> np.ndarray:
    """Return the most trials (R,) that a boot has."""
    return np.asarray(np.maximum(candidate.trials.max(axis=(1, 2)), other.trials.max(axis=(1, 2))))


def _look(
    candidate: Counts, other: Counts, design: Design, bounds: list[np.ndarray], number: int
) -> tuple[Look, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return the look, and its z of "worse", "better" and "below tolerance"."""
    factor, freedom = _dispersion(candidate, other)
    hits = candidate.hits.sum(axis=2), other.hits.sum(axis=2)
    trials = candidate.trials.sum(axis=2), other.trials.sum(axis=2)
    usable = (trials[0] > 0) & (trials[1] > 0)
    shares = [np.where(usable, h / np.maximum(n, 1.0), np.nan) for h, n in zip(hits, trials, strict=True)]
    effects = shares[0] - shares[1]
    errors = _board_errors(hits, trials, factor)
    whole = strata.combine(effects, np.where(usable, errors**2, np.nan), freedom, 0.5 * design.min_effect)
    kept = whole.used
    totals = _Totals.of(hits, trials, kept, factor)
    boundary, below = (student_boundary(bound[:, number], freedom) for bound in bounds)
    final = student_boundary(bounds[0][:, -1], freedom)
    planned = totals.error * np.sqrt(totals.planned(design, number))
    look = Look(
        valid=kept.any(axis=1) & ~whole.contradictory,
        difference=totals.difference,
        least=whole.least,
        apart=whole.apart,
        error=totals.error,
        boundary=boundary,
        pass_boundary=below,
        pass_bound=totals.bound(below),
        boot_deviation=np.full(len(factor), np.nan),
        smallest_effect=np.maximum(final * planned, design.min_effect) + _POWER_80 * planned,
        odd=whole.odd,
        effects=effects,
        errors=np.where(usable, errors, np.nan),
    )
    z = totals.worse(), totals.better(), totals.within(design.tolerance)
    return look, z


def _board_errors(
    hits: tuple[np.ndarray, np.ndarray], trials: tuple[np.ndarray, np.ndarray], factor: np.ndarray
) -> np.ndarray:
    """Return the error of each board's difference, at the common share, as if one more trial had failed."""
    share = (hits[0] + hits[1] + 1.0) / (trials[0] + trials[1] + 2.0)
    per_trial = 1.0 / np.maximum(trials[0], 1.0) + 1.0 / np.maximum(trials[1], 1.0)
    return np.asarray(np.sqrt(factor[:, np.newaxis] * share * (1.0 - share) * per_trial))


@dataclass(frozen=True)
class _Totals:
    """The boards that count, together, (R,) each: Mantel and Haenszel's difference, and what tests need."""

    difference: np.ndarray
    error: np.ndarray
    hits: tuple[np.ndarray, np.ndarray]
    chance: np.ndarray  # that a failure is the candidate's where both fail alike
    spread: tuple[np.ndarray, np.ndarray]  # variance of the difference over p (1 - p), of each role
    ratio: np.ndarray  # candidate's share of all trials
    rate: np.ndarray
    factor: np.ndarray

    @classmethod
    def of(
        cls,
        hits: tuple[np.ndarray, np.ndarray],
        trials: tuple[np.ndarray, np.ndarray],
        kept: np.ndarray,
        factor: np.ndarray,
    ) -> _Totals:
        h = [np.where(kept, of, 0.0) for of in hits]
        n = [np.where(kept, of, 1.0) for of in trials]
        weight = np.where(kept, n[0] * n[1] / (n[0] + n[1]), 0.0)
        total = np.maximum(weight.sum(axis=1), np.finfo(float).tiny)
        rates = [(weight * own / of).sum(axis=1) / total for own, of in zip(h, n, strict=True)]
        spread = [factor * (weight**2 / of).sum(axis=1) / total**2 for of in n]
        both = h[0] + h[1]
        share = n[0] / (n[0] + n[1])
        failed = both.sum(axis=1)
        mean_share = (weight * share).sum(axis=1) / total
        chance = np.where(failed > 0, (both * share).sum(axis=1) / np.maximum(failed, 1.0), mean_share)
        smooth = [
            (np.where(kept, own, 0.0).sum(axis=1) + 1.0) / (np.where(kept, of, 0.0).sum(axis=1) + 2.0)
            for own, of in zip(h, n, strict=True)
        ]
        error = np.sqrt(sum(p * (1.0 - p) * v for p, v in zip(smooth, spread, strict=True)))
        rate = mean_share * rates[0] + (1.0 - mean_share) * rates[1]
        some = kept.any(axis=1)
        return cls(
            np.where(some, rates[0] - rates[1], np.nan), np.where(some, error, np.nan),
            (h[0].sum(axis=1), h[1].sum(axis=1)), chance, (spread[0], spread[1]), mean_share, rate, factor,
        )  # fmt: skip

    def worse(self) -> np.ndarray:
        return self._exact(self.hits[0], self.hits[1], self.chance)

    def better(self) -> np.ndarray:
        return self._exact(self.hits[1], self.hits[0], 1.0 - self.chance)

    def _exact(self, own: np.ndarray, others: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """Return the normal quantile of P(as many failures or more on this side), over the dispersion."""
        above = scipy.special.betainc(
            np.maximum(own / self.factor, 1e-12), others / self.factor + 1.0, np.clip(chance, 0.0, 1.0)
        )
        z = -scipy.special.ndtri(np.where(own > 0, above, 1.0))
        return np.asarray(np.clip(z, -_HIGHEST_Z, _HIGHEST_Z))

    def within(self, tolerance: float | np.ndarray) -> np.ndarray:
        """Return how many errors, as they would be at the tolerance, the difference lies below it."""
        of_other = np.clip(self.rate - self.ratio * tolerance, 0.0, 1.0)
        of_candidate = np.clip(of_other + tolerance, 0.0, 1.0)
        variance = of_candidate * (1.0 - of_candidate) * self.spread[0]
        variance = variance + of_other * (1.0 - of_other) * self.spread[1]
        z = (tolerance - self.difference) / np.sqrt(np.where(variance > 0.0, variance, np.nan))
        return np.asarray(np.nan_to_num(z, nan=-_HIGHEST_Z))

    def bound(self, errors: np.ndarray) -> np.ndarray:
        """Return the largest difference that does not lie so many errors above this one, by within()."""
        low, high = np.clip(self.difference, 0.0, 1.0), np.ones(self.difference.shape)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2.0
            excluded = self.within(middle) > errors
            low, high = np.where(excluded, low, middle), np.where(excluded, middle, high)
        return np.where(np.isfinite(self.difference), high, np.nan)

    def planned(self, design: Design, number: int) -> np.ndarray:
        """Return the variance at the last look over that at this one, by the boots of the plan."""
        (last_c, last_o), (now_c, now_o) = design.looks[-1], design.looks[number]
        at_end = self.spread[0] * now_c / last_c + self.spread[1] * now_o / last_o
        return np.asarray(at_end / (self.spread[0] + self.spread[1]))


def _fractions(candidate: Counts, other: Counts, design: Design) -> np.ndarray:
    """Return the share of the planned boots' information at each look, (R, looks); boots lost are missed."""
    trials = [np.nan_to_num(np.asarray(of.trials, dtype=float)) > 0 for of in (candidate, other)]
    last_c, last_o = design.looks[-1]
    took_part = trials[0].any(axis=2) & trials[1].any(axis=2)
    planned = np.maximum(took_part.sum(axis=1), 1) * last_c * last_o / (last_c + last_o)
    columns = []
    for of_candidate, of_other in design.looks:
        a, b = trials[0][:, :, :of_candidate].sum(axis=2), trials[1][:, :, :of_other].sum(axis=2)
        columns.append((a * b / np.maximum(a + b, 1)).sum(axis=1) / planned)
    return np.stack(columns, axis=1)
