# SPDX-License-Identifier: Apache-2.0
"""Boundaries of a test that looks at its data several times, by numerical recursion.

The error probability is spent as information accrues (Lan & DeMets 1983): by ``2 - 2 Phi(z / sqrt(t))``,
which is like O'Brien & Fleming's boundary and spends almost nothing early, or by ``alpha ln(1 + (e - 1) t)``,
which is like Pocock's and stays nearly level. Each boundary is solved for from the density of the statistic
among those that have not crossed yet (Armitage, McPherson & Rowe 1969), on the grid of Jennison & Turnbull
2000, chapter 19. Fractions are rounded before and boundaries after, so that a replay has the same bytes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import scipy.optimize
import scipy.special

Spending = Literal["obrien-fleming", "pocock"]

FRACTION_STEP = 0.02
_GRID = 16  # J & T's r: 6 r - 1 points, and those halfway between
_DIGITS = 4
_HIGHEST = 8.0  # a boundary beyond it is crossed with less than 1e-15: it says "not yet"


def spent(spending: Spending, alpha: float, fraction: float) -> float:
    """Return the error probability that may have been spent once ``fraction`` of the information is there."""
    fraction = min(1.0, fraction)
    if spending == "pocock":
        return alpha * math.log1p((math.e - 1.0) * fraction)
    z = float(-scipy.special.ndtri(alpha / 2.0))
    return 2.0 * float(scipy.special.ndtr(-z / math.sqrt(fraction)))


@functools.lru_cache(maxsize=4096)
def boundaries(fractions: tuple[float, ...], alpha: float, spending: Spending) -> tuple[float, ...]:
    """Return the upper boundary of z at each look; the error of one side, crossed at any look, is ``alpha``.

    ``fractions`` of the information grow from above 0 to 1. A boundary depends on those up to its own look
    only. Raises ValueError where they do not grow, or where alpha is not between 0 and 0.5.
    """
    if not 0.0 < alpha < 0.5:
        raise ValueError(f"alpha must lie between 0 and 0.5, got {alpha}")
    found: list[float] = []
    before, already = 0.0, 0.0
    points, masses = np.zeros(1), np.ones(1)  # of the sum S = z sqrt(t), among those that went on
    for fraction in fractions:
        if fraction <= before:
            raise ValueError(f"fractions of information must grow, got {fractions}")
        total = spent(spending, alpha, fraction)
        step = math.sqrt(fraction - before)
        bound = round(_solve(points, masses, math.sqrt(fraction), step, total - already), _DIGITS)
        found.append(bound)
        already = total
        points, masses = _go_on(points, masses, math.sqrt(fraction), step, bound)
        before = fraction
    return tuple(found)


def of_rows(fractions: np.ndarray, alpha: float, spending: Spending) -> np.ndarray:
    """Return boundaries() of each row of ``fractions`` (R, looks), rounded to FRACTION_STEP and made to grow.

    The last column counts as 1: what is there at the last look is all there will be.
    """
    looks = fractions.shape[1]
    steps = np.rint(np.nan_to_num(fractions, nan=0.0) / FRACTION_STEP).astype(np.int64)
    most = round(1.0 / FRACTION_STEP)
    steps = np.clip(steps, 1, most - looks + 1)
    steps = np.maximum.accumulate(steps - np.arange(looks), axis=1) + np.arange(looks)
    steps = np.minimum(steps, most - looks + 1 + np.arange(looks))
    steps[:, -1] = most
    rows, index = np.unique(steps, axis=0, return_inverse=True)
    solved = [boundaries(tuple(round(n / most, 6) for n in row.tolist()), alpha, spending) for row in rows]
    return np.array(solved)[index.reshape(-1)]


def _solve(points: np.ndarray, masses: np.ndarray, root: float, step: float, share: float) -> float:
    """Return the z at this look that is exceeded with probability ``share`` by those that went on."""

    def excess(z: float) -> float:
        return float(masses @ scipy.special.ndtr((points - z * root) / step)) - share

    if excess(_HIGHEST) >= 0.0:
        return _HIGHEST
    return float(scipy.optimize.brentq(excess, -_HIGHEST, _HIGHEST, xtol=1e-9))


def _go_on(
    points: np.ndarray, masses: np.ndarray, root: float, step: float, bound: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return grid and masses of S at this look, of those that stay below ``bound``."""
    z, weights = _grid(bound)
    steps = (z[:, np.newaxis] * root - points) / step
    density = (np.exp(-0.5 * steps**2) @ masses) * root / (step * math.sqrt(2.0 * math.pi))
    return z * root, density * weights


def _grid(bound: float) -> tuple[np.ndarray, np.ndarray]:
    """Return points of z below ``bound`` and Simpson's weights."""
    ranks = np.arange(1, 6 * _GRID)
    tail = 3.0 + 4.0 * np.log(_GRID / np.arange(_GRID - 1, 0, -1))
    inner = -3.0 + 3.0 * (ranks[_GRID - 1 : 5 * _GRID] - _GRID) / (2.0 * _GRID)
    knots = np.concatenate([-tail[::-1], inner, tail])
    knots = np.concatenate([knots[knots < bound], [bound]])
    middles = 0.5 * (knots[:-1] + knots[1:])
    z = np.empty(2 * len(knots) - 1)
    z[::2], z[1::2] = knots, middles
    widths = np.diff(knots)
    weights = np.zeros_like(z)
    weights[1::2] = 4.0 * widths / 6.0
    weights[:-1:2] += widths / 6.0
    weights[2::2] += widths / 6.0
    return z, weights


def crossing_probability(
    fractions: tuple[float, ...], bounds: tuple[float, ...], drift: Callable[[float], float] = lambda _: 0.0
) -> float:
    """Return how likely z crosses any of ``bounds``, its mean at fraction t being ``drift(t)``."""
    points, masses, before, crossed, mean = np.zeros(1), np.ones(1), 0.0, 0.0, 0.0
    for fraction, bound in zip(fractions, bounds, strict=True):
        root, step = math.sqrt(fraction), math.sqrt(fraction - before)
        shift = drift(fraction) * root
        points = points + (shift - mean)
        crossed += float(masses @ scipy.special.ndtr((points - bound * root) / step))
        points, masses = _go_on(points, masses, root, step, bound)
        before, mean = fraction, shift
    return crossed
