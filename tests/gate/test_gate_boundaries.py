# SPDX-License-Identifier: Apache-2.0
"""Boundaries of tests that look several times: published values, error rates, bytes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from hil.gate.compare.boundaries import Spending, boundaries, crossing_probability, of_rows

FIFTHS = (0.2, 0.4, 0.6, 0.8, 1.0)
PLANNED = (0.12, 0.26, 0.38, 0.52, 0.76, 1.0)


@pytest.mark.parametrize(
    ("spending", "published"),
    [
        ("obrien-fleming", (4.877, 3.357, 2.680, 2.290, 2.031)),
        ("pocock", (2.438, 2.427, 2.410, 2.397, 2.386)),
    ],
)
def test_published_boundaries(spending: Spending, published: tuple[float, ...]) -> None:
    """Five equal looks at a one-sided 2.5 %: values from the literature."""
    assert boundaries(FIFTHS, 0.025, spending) == pytest.approx(published, abs=0.0006)


@pytest.mark.parametrize("spending", ["obrien-fleming", "pocock"])
@pytest.mark.parametrize("alpha", [0.0005, 0.025])
def test_boundaries_spend_alpha(spending: Spending, alpha: float) -> None:
    """Without a drift any boundary is crossed with probability alpha, at uneven looks too."""
    found = boundaries(PLANNED, alpha, spending)
    assert crossing_probability(PLANNED, found) == pytest.approx(alpha, rel=0.01)


def test_boundaries_agree_with_simulation() -> None:
    """Brownian motion crosses as often as the recursion says, with and without a drift."""
    random = np.random.RandomState(5)
    fractions = np.array(PLANNED)
    steps = np.diff(fractions, prepend=0.0)
    sums = np.cumsum(random.normal(size=(100_000, 6)) * np.sqrt(steps), axis=1)
    found = boundaries(PLANNED, 0.025, "obrien-fleming")
    for drift in (0.0, 2.5):
        crossed = ((sums + drift * fractions) / np.sqrt(fractions) > np.array(found)).any(axis=1).sum()
        expected = crossing_probability(PLANNED, found, lambda t, drift=drift: drift * math.sqrt(t))
        low, high = scipy.stats.binom.interval(0.9999, len(sums), expected)
        assert low <= crossed <= high


def test_a_boundary_hangs_on_the_looks_before_it_only() -> None:
    """What comes later, planned or not, changes no boundary that a decision was made by."""
    other = (*PLANNED[:3], 0.6, 0.9, 1.0)
    for spending in ("obrien-fleming", "pocock"):
        assert boundaries(PLANNED, 0.001, spending)[:3] == boundaries(other, 0.001, spending)[:3]


def test_a_single_look_has_the_quantile() -> None:
    """With one look it is a plain test."""
    assert boundaries((1.0,), 0.05, "pocock") == pytest.approx((1.6449,), abs=1e-4)


def test_rows_are_rounded_and_made_to_grow() -> None:
    """Fractions that stand still, shrink, exceed 1 or are unknown still give boundaries, the last as at 1."""
    rows = np.array([PLANNED, (0.121, 0.259, 0.379, 0.521, 0.759, 0.9), (0.5, 0.5, 0.4, 2.0, math.nan, 1.0)])
    found = of_rows(rows, 0.001, "obrien-fleming")
    assert tuple(found[0]) == boundaries(PLANNED, 0.001, "obrien-fleming") == tuple(found[1])
    assert np.isfinite(found).all()
    assert (of_rows(np.zeros((2, 6)), 0.001, "pocock") > 0.0).all()


def test_no_boundary_from_nonsense() -> None:
    """Fractions that do not grow, and an alpha that is none, are errors that say so."""
    with pytest.raises(ValueError, match="must grow"):
        boundaries((0.5, 0.5, 1.0), 0.01, "pocock")
    with pytest.raises(ValueError, match="alpha"):
        boundaries((1.0,), 0.0, "pocock")
