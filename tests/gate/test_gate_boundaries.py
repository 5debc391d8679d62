# SPDX-License-Identifier: Apache-2.0
"""Boundaries of tests that look several times: published values, error rates, bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import scipy.stats

from hil.gate.boundaries import boundaries, go_on, information, of_looks, spent

FIFTHS = (0.2, 0.4, 0.6, 0.8, 1.0)
PLANNED = (0.12, 0.26, 0.38, 0.52, 0.76, 1.0)
PLAN = ((3, 3), (6, 6), (10, 10), (16, 16))


def by(fractions: tuple[float, ...], alpha: float) -> tuple[float, ...]:
    return boundaries(fractions, tuple(spent(alpha, one) for one in fractions))


def crossing_probability(
    fractions: Sequence[float], bounds: Sequence[float], drift: Callable[[float], float] = lambda _: 0.0
) -> float:
    """Return how likely z crosses any of ``bounds``, its mean at fraction t being ``drift(t)``."""
    points, masses, before, crossed, mean = np.zeros(1), np.ones(1), 0.0, 0.0, 0.0
    for fraction, bound in zip(fractions, bounds, strict=True):
        root, step = math.sqrt(fraction), math.sqrt(fraction - before)
        shift = drift(fraction) * root
        points = points + (shift - mean)
        crossed += float(masses @ scipy.stats.norm.cdf((points - bound * root) / step))
        points, masses = go_on(points, masses, root, step, bound)
        before, mean = fraction, shift
    return crossed


@pytest.mark.parametrize(
    ("fractions", "published"),
    [(FIFTHS, (4.877, 3.357, 2.680, 2.290, 2.031)), ((1 / 3, 2 / 3, 1.0), (3.7103, 2.5114, 1.9930))],
)
def test_published_boundaries(fractions: tuple[float, ...], published: tuple[float, ...]) -> None:
    """Equal looks at a one-sided 2.5 %: values from the literature."""
    assert by(fractions, 0.025) == pytest.approx(published, abs=0.0006)


@pytest.mark.parametrize("alpha", [0.0005, 0.025])
def test_boundaries_spend_alpha(alpha: float) -> None:
    """Without a drift any boundary is crossed with probability alpha, at uneven looks too."""
    assert crossing_probability(PLANNED, by(PLANNED, alpha)) == pytest.approx(alpha, rel=0.01)


def test_boundaries_agree_with_simulation() -> None:
    """Brownian motion crosses as often as the recursion says, with and without a drift."""
    random = np.random.RandomState(5)
    fractions = np.array(PLANNED)
    steps = np.diff(fractions, prepend=0.0)
    sums = np.cumsum(random.normal(size=(100_000, 6)) * np.sqrt(steps), axis=1)
    found = by(PLANNED, 0.025)
    for drift in (0.0, 2.5):
        crossed = ((sums + drift * fractions) / np.sqrt(fractions) > np.array(found)).any(axis=1).sum()
        expected = crossing_probability(PLANNED, found, lambda t, drift=drift: drift * math.sqrt(t))
        low, high = scipy.stats.binom.interval(0.9999, len(sums), expected)
        assert low <= crossed <= high


def test_a_boundary_hangs_on_the_looks_before_it_only() -> None:
    """What comes later, planned or not, changes no boundary that a decision was made by."""
    assert by(PLANNED, 0.001)[:3] == by((*PLANNED[:3], 0.6, 0.9, 1.0), 0.001)[:3]


def test_a_single_look_has_the_quantile() -> None:
    """With one look it is a plain test."""
    assert of_looks(((4, 4),), 0.05) == pytest.approx((1.6449,), abs=1e-4)


def test_the_looks_of_a_plan_spend_alpha_together() -> None:
    """However many there are: the last one spends what the others left."""
    fractions = tuple(information(look) / information(PLAN[-1]) for look in PLAN)
    assert crossing_probability(fractions, of_looks(PLAN, 0.01)) == pytest.approx(0.01, rel=0.01)


def test_no_boundary_from_nonsense() -> None:
    """Fractions that do not grow, and an alpha that is none, are errors that say so."""
    with pytest.raises(ValueError, match="must grow"):
        boundaries((0.5, 0.5, 1.0), (0.001, 0.002, 0.003))
    with pytest.raises(ValueError, match=r"between 0 and 0\.5"):
        boundaries((1.0,), (0.0,))


@pytest.mark.parametrize("share", [0.34, 0.5])
def test_the_largest_shares_that_a_policy_may_name_have_boundaries(share: float) -> None:
    """Looks that may err in every second case have boundaries too."""
    found = of_looks(PLAN, share)
    assert len(found) == len(PLAN)
    assert all(math.isfinite(bound) for bound in found)
