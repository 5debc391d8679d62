# SPDX-License-Identifier: Apache-2.0
"""Tails and their inverses, each beside SciPy's over the range in which the judge asks for them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
from scipy import optimize
from scipy import special as theirs

from hil.base import special

Z = [-37.0, -8.0, -3.09, -1.0, -1e-9, 0.0, 0.3, 2.0, 8.0]
P = [1e-300, 1e-12, 1e-4, 0.01, 0.05, 0.3, 0.5, 0.7, 0.975, 1 - 1e-9]
FREEDOM = [1.0, 1.7, 2.0, 5.3, 30.0, 1e4]
T = [-1e6, -40.0, -3.0, -0.5, -0.01, 0.0, 0.7, 12.0]
AB = [0.3, 1.0, 2.5, 17.0, 400.0, 20_000.0]
X = [1e-9, 1e-3, 0.05, 0.3, 0.5, 0.9, 0.999]
COUNTS = [1, 2, 7, 60, 900]


def near(ours: float, wanted: float) -> bool:
    """Whether nine digits are the same; below 1e-250 the argument's own last digit is in the ninth."""
    return ours == pytest.approx(float(wanted), rel=1e-9, abs=1e-250)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("ndtr", [Z]),
        ("ndtri", [P]),
        ("stdtr", [FREEDOM, T]),
        ("stdtrit", [FREEDOM, [1e-12, *P[2:]]]),
        ("betainc", [AB, AB, X]),
        ("betaincc", [AB, AB, X]),
        ("gammaincc", [COUNTS, [0.0, 1e-3, 0.5, 6.0, 60.0, 800.0]]),
        ("gammainccinv", [COUNTS, [1e-6, 1e-3, 0.025, 0.5, 0.95]]),
        ("gammaincinv", [COUNTS, [1e-3, 0.025, 0.5, 0.95]]),
        ("chdtrc", [[2, 4, 20, 300], [0.0, 0.1, 5.0, 200.0]]),
    ],
)
def test_it_is_as_scipys(name: str, arguments: list[list[float]]) -> None:
    """Nine digits, in the tails too."""
    ours, wanted = getattr(special, name), getattr(theirs, name)
    wrong = [
        (case, ours(*case), float(wanted(*case)))
        for case in itertools.product(*arguments)
        if not near(ours(*case), wanted(*case))
    ]
    assert not wrong


@pytest.mark.parametrize("name", ["betaincinv", "betainccinv"])
def test_bounds_of_a_share_are_scipys(name: str) -> None:
    """Those of 0 to 20,000 hits; a share that is smaller than SciPy can tell from 0 is left out."""
    for seen, of, alpha in itertools.product([0.4, 1.0, 3.0, 50.0, 2e4], [1.0, 20.0, 2e4], [1e-6, 0.01, 0.3]):
        wanted = float(getattr(theirs, name)(seen, of, alpha))
        assert getattr(special, name)(seen, of, alpha) == pytest.approx(wanted, rel=1e-9, abs=1e-14)


def test_the_ends_are_numbers() -> None:
    """A probability of 0 or 1 has a quantile; what is no number stays none; no failure is no surprise."""
    assert (special.ndtri(0.0), special.ndtri(1.0)) == (-math.inf, math.inf)
    assert (special.stdtrit(3.0, 0.0), special.stdtrit(3.0, 1.0)) == (-math.inf, math.inf)
    assert special.stdtrit(1.0, 1e-200) < -1e100
    assert math.isnan(special.stdtrit(3.0, math.nan))
    assert special.betaincinv(0.001, 5.0, 0.01) == 0.0
    assert math.isnan(special.stdtr(3.0, math.nan))
    assert (special.stdtr(3.0, -math.inf), special.stdtr(3.0, math.inf)) == (0.0, 1.0)
    assert special.betainc(0.0, 5.0, 0.2) == 1.0
    assert (special.betainc(2.0, 3.0, 0.0), special.betainc(2.0, 3.0, 1.0)) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("function", "low", "high"),
    [
        (lambda x: x**3 - 2.0, 0.0, 5.0),
        (lambda x: math.exp(x) - 1e-7, -50.0, 3.0),
        (lambda x: math.atan(x - 3.0), -1e3, 1e4),
        (lambda x: x - 1.0, 1.0, 4.0),
    ],
)
def test_a_root_is_scipys(function: Callable[[float], float], low: float, high: float) -> None:
    """In steps that get small, large and none at all."""
    wanted = optimize.brentq(function, low, high, xtol=1e-15)
    assert special.root(function, low, high) == pytest.approx(wanted, rel=1e-12)


def test_without_a_change_of_sign_there_is_no_root() -> None:
    """Nothing is made up."""
    with pytest.raises(ValueError, match="no change of sign"):
        special.root(lambda x: x * x + 1.0, -1.0, 1.0)
