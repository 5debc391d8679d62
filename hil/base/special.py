# SPDX-License-Identifier: Apache-2.0
"""Tails of distributions and their inverses: what the judge needs of SciPy, which takes 140 MB.

Names and arguments are those of scipy.special. tests/base/test_special.py compares each function with it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from statistics import NormalDist

_NORMAL = NormalDist()
_TINY = 1e-300
_EXACT = 4e-16  # relative; a double has no more digits
_MOST_STEPS = 100_000


def ndtr(z: float) -> float:
    """Return P(Z <= z) of the normal distribution."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def ndtri(p: float) -> float:
    """Return the z of which ndtr() is ``p``."""
    return _NORMAL.inv_cdf(p) if 0.0 < p < 1.0 else {0.0: -math.inf, 1.0: math.inf}.get(p, math.nan)


def stdtr(freedom: float, t: float) -> float:
    """Return P(T <= t) of Student's t."""
    if math.isnan(t):
        return math.nan
    tail = 0.5 * _beta_tails(freedom / 2.0, 0.5, *_parts(freedom, t))[0]
    return tail if t < 0.0 else 1.0 - tail


@functools.lru_cache(maxsize=4096)  # a run asks for the same few again and again
def stdtrit(freedom: float, p: float) -> float:
    """Return the t of which stdtr() is ``p``."""
    if not 0.0 < p < 1.0:
        return {0.0: -math.inf, 1.0: math.inf}.get(p, math.nan)
    if p > 0.5:
        return -stdtrit(freedom, 1.0 - p)
    low = -1.0
    while stdtr(freedom, low) > p:
        low *= 2.0
    return root(lambda t: math.log(max(stdtr(freedom, t), _TINY) / p), low, 0.0)


def betainc(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b)."""
    return 1.0 if a <= 0.0 else _beta_tails(a, b, x, 1.0 - x)[0]


def betainc_within(a: float, b: float, x: float, most: float) -> bool:
    """Return whether betainc() is ``most`` at most; ``b`` is at least 1.

    The ratios of its series' terms (DLMF 8.17.8) fall from (a + b) x / (a + 1): the geometric series of that
    ratio bounds it, which mostly says enough.
    """
    ratio = (a + b) * x / (a + 1.0)
    if a > 0.0 and 0.0 < x < 1.0 and ratio < 1.0:
        log_front = a * math.log(x) + b * math.log1p(-x)
        log_front += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        if log_front < 0.0 and math.exp(log_front) <= 0.999 * most * a * (1.0 - ratio):
            return True
    return betainc(a, b, x) <= most


def betaincc(a: float, b: float, x: float) -> float:
    """Return 1 - I_x(a, b), with all its digits where it is small."""
    return 0.0 if a <= 0.0 else _beta_tails(a, b, x, 1.0 - x)[1]


@functools.lru_cache(maxsize=4096)
def betaincinv(a: float, b: float, p: float) -> float:
    """Return the x of which betainc() is ``p``; 0 where that is below what a double can tell from 0."""
    if betainc(a, b, _TINY) >= p:
        return 0.0
    log_x = root(lambda at: math.log(max(betainc(a, b, math.exp(at)), _TINY) / p), math.log(_TINY), 0.0)
    return math.exp(log_x)


def betainccinv(a: float, b: float, p: float) -> float:
    """Return the x of which betaincc() is ``p``."""
    return 1.0 - betaincinv(b, a, p)


def gammaincc(count: int, x: float) -> float:
    """Return P(N < count) of a Poisson distribution with mean ``x``."""
    if x <= 0.0:
        return 1.0
    return math.fsum(math.exp(n * math.log(x) - math.lgamma(n + 1.0) - x) for n in range(count))


def gammainccinv(count: int, p: float) -> float:
    """Return the x of which gammaincc() is ``p``."""
    high = float(count)
    while gammaincc(count, high) > p:
        high *= 2.0
    return root(lambda x: gammaincc(count, x) - p, 0.0, high)


def gammaincinv(count: int, p: float) -> float:
    """Return the x of which 1 - gammaincc() is ``p``."""
    return gammainccinv(count, 1.0 - p)


def chdtrc(freedom: int, x: float) -> float:
    """Return P(X > x) of chi squared with an even number of degrees of freedom."""
    return gammaincc(freedom // 2, x / 2.0)


def root(function: Callable[[float], float], low: float, high: float, near: float = 0.0) -> float:
    """Return where ``function`` is 0 between ``low`` and ``high``, where it has different signs (Brent 1973).

    ``near``: an absolute error that is allowed besides the rounding of a double.
    """
    a, b, c = low, high, low
    at_a, at_b = function(a), function(b)
    if at_a == 0.0 or at_a * at_b > 0.0:
        if at_a and at_b:
            raise ValueError(f"no change of sign between {low:g} and {high:g}")
        return a if at_a == 0.0 else b
    at_c, step, before = at_a, b - a, b - a
    for _ in range(_MOST_STEPS):
        if abs(at_c) < abs(at_b):
            a, b, c = b, c, b
            at_a, at_b, at_c = at_b, at_c, at_b
        tolerance, middle = _EXACT * abs(b) + 0.5 * near, 0.5 * (c - b)
        if abs(middle) <= tolerance or at_b == 0.0:
            return b
        step, before = _step((a, b, c), (at_a, at_b, at_c), middle, tolerance, before, step)
        a, at_a = b, at_b
        b += step if abs(step) > tolerance else math.copysign(tolerance, middle)
        at_b = function(b)
        if at_b * at_c > 0.0:
            c, at_c = a, at_a
            step = before = b - a
    raise ArithmeticError(f"no root found between {low:g} and {high:g}")


def _step(
    places: tuple[float, float, float],
    values: tuple[float, float, float],
    middle: float,
    tolerance: float,
    before: float,
    last: float,
) -> tuple[float, float]:
    """Return the next step and the one before it: by interpolation where that shrinks, else to the middle."""
    (a, _, c), (at_a, at_b, at_c) = places, values
    if abs(before) < tolerance or abs(at_a) <= abs(at_b):
        return middle, middle
    s = at_b / at_a
    if a == c:
        p, q = 2.0 * middle * s, 1.0 - s
    else:
        q, r = at_a / at_c, at_b / at_c
        p = s * (2.0 * middle * q * (q - r) - (places[1] - a) * (r - 1.0))
        q = (q - 1.0) * (r - 1.0) * (s - 1.0)
    q = -q if p > 0.0 else q
    p = abs(p)
    if 2.0 * p < min(3.0 * middle * q - abs(tolerance * q), abs(before * q)):
        return p / q, last
    return middle, middle


def _parts(freedom: float, t: float) -> tuple[float, float]:
    """Return the shares of ``freedom`` and t² in their sum, each with all its digits."""
    ratio = t * (t / freedom) if abs(t) < 1e150 else math.inf
    return 1.0 / (1.0 + ratio), 1.0 / (1.0 + 1.0 / ratio) if ratio else 0.0


def _beta_tails(a: float, b: float, x: float, y: float) -> tuple[float, float]:
    """Return I_x(a, b) and 1 - I_x(a, b), where ``y`` is 1 - x; the smaller one is computed."""
    if x <= 0.0 or y <= 0.0:
        return (0.0, 1.0) if x <= 0.0 else (1.0, 0.0)
    if x * (a + b + 2.0) > a + 1.0:
        upper = _beta_fraction(b, a, y, x)
        return 1.0 - upper, upper
    lower = _beta_fraction(a, b, x, y)
    return lower, 1.0 - lower


def _beta_fraction(a: float, b: float, x: float, y: float) -> float:
    """Return I_x(a, b) by its continued fraction (DLMF 8.17.22, Lentz), which needs x below the mean."""
    log_x, log_y = (math.log(x), math.log1p(-x)) if x < 0.5 else (math.log1p(-y), math.log(y))
    log_front = a * log_x + b * log_y + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    c, d = 1.0, 1.0 / _away(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, _MOST_STEPS):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0)),
        ):
            d, c = 1.0 + factor * d, 1.0 + factor / c
            if -_TINY < d < _TINY or -_TINY < c < _TINY:
                d, c = _away(d), _away(c)
            d = 1.0 / d
            value *= c * d
        if abs(c * d - 1.0) < _EXACT:
            return math.exp(log_front) * value / a
    raise ArithmeticError(f"the incomplete beta function of {a:g}, {b:g} and {x:g} does not converge")


def _away(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
