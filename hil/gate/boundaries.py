# SPDX-License-Identifier: Apache-2.0
"""Boundaries of a test that looks at its data several times, by numerical recursion.

The error probability is spent as information accrues (Lan & DeMets 1983), by ``2 - 2 Phi(z / sqrt(t))``: like
O'Brien & Fleming's boundary it spends almost nothing early. Each boundary is solved for from the density of
the statistic among those that have not crossed yet (Armitage, McPherson & Rowe 1969), on the grid of Jennison
& Turnbull 2000, chapter 19. Boundaries are rounded, so that a replay has the same bytes.
"""

from __future__ import annotations

import functools
import math

from hil.base import special
from hil.base.numeric import np
from hil.model import Looks

_GRID = 16  # J & T's r: 6 r - 1 points, and those halfway between
_DIGITS = 4
_HIGHEST = 8.0  # a boundary beyond it is crossed with less than 1e-15: it says "not yet"


def spent(alpha: float, fraction: float) -> float:
    """Return the error probability that may have been spent once ``fraction`` of the information is there."""
    if fraction >= 1.0:
        return alpha
    z = float(-special.ndtri(alpha / 2.0))
    return 2.0 * float(special.ndtr(-z / math.sqrt(fraction)))


def information(look: tuple[int, int]) -> float:
    """Return the information in so many boots of a board, in boots of each; 0 where one role has none."""
    return look[0] * look[1] / max(look[0] + look[1], 1)


@functools.lru_cache(maxsize=4096)
def of_looks(looks: Looks, alpha: float) -> tuple[float, ...]:
    """Return the boundary of z at each look; together they spend ``alpha``.

    What the looks hold is as planned: boots that are lost change how they hang together a little.
    """
    amount = [information(look) for look in looks]
    fractions = tuple(one / amount[-1] for one in amount)
    return boundaries(fractions, tuple(spent(alpha, one) for one in fractions))


@functools.lru_cache(maxsize=4096)
def boundaries(fractions: tuple[float, ...], shares: tuple[float, ...]) -> tuple[float, ...]:
    """Return the upper boundary of z at each look; by then one side's error of ``shares`` is spent.

    ``fractions`` of the information grow from above 0 to 1. A boundary depends on those up to its own look
    only. Raises ValueError where they do not grow, or where a share is not above 0, and 0.5 at most.
    """
    found: list[float] = []
    before, already = 0.0, 0.0
    points, masses = np.zeros(1), np.ones(1)  # of the sum S = z sqrt(t), among those that went on
    for fraction, share in zip(fractions, shares, strict=True):
        if fraction <= before:
            raise ValueError(f"fractions of information must grow, got {fractions}")
        if not 0.0 < share <= 0.5:
            raise ValueError(f"an error probability must lie between 0 and 0.5, got {share}")
        step = math.sqrt(fraction - before)
        bound = round(_solve(points, masses, math.sqrt(fraction), step, share - already), _DIGITS)
        found.append(bound)
        already = share
        points, masses = go_on(points, masses, math.sqrt(fraction), step, bound)
        before = fraction
    return tuple(found)


def _solve(points: np.ndarray, masses: np.ndarray, root: float, step: float, share: float) -> float:
    """Return the z at this look that is exceeded with probability ``share`` by those that went on."""

    def excess(z: float) -> float:
        beyond = [special.ndtr(place) for place in ((points - z * root) / step).tolist()]
        return float(masses @ np.array(beyond)) - share

    if excess(_HIGHEST) >= 0.0:
        return _HIGHEST
    return special.root(excess, -_HIGHEST, _HIGHEST, near=1e-9)


def go_on(
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
