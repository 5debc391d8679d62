# SPDX-License-Identifier: Apache-2.0
"""Boards as strata: one difference from those of all boards, and which board contradicts the others.

Differences are combined by inverse variance. Cochran's Q asks whether they agree; a board whose leaving out
makes the others agree is odd (it drifts, it hangs badly) and is left out as long as most boards remain. Where
no board or too many would have to go, the boards contradict each other, and nothing can be decided.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.special

ODD_LEVEL = 0.001  # how often boards that agree are taken for contradicting
_FEWEST_TO_SPARE = 2  # boards, of which one may be left out to see what the others say
_SHARE_ALIKE = 0.25  # boards need not agree better than to this share of their common difference


@dataclass(frozen=True)
class Combined:
    """Shape (R,), ``odd`` and ``used`` (R, B). ``contradictory``: more than a minority of boards disagrees.

    ``least`` is the difference without the board that adds the most to it, where there are several, and
    ``apart`` by how many errors that board lies above the others: 0 of a single one.
    """

    difference: np.ndarray
    least: np.ndarray
    apart: np.ndarray
    variance: np.ndarray
    odd: np.ndarray
    contradictory: np.ndarray
    used: np.ndarray


def combine(effect: np.ndarray, variance: np.ndarray, freedom: np.ndarray, alike: float) -> Combined:
    """Combine boards (R, B), NaN where a board says nothing; one variance, of ``freedom`` (R,) degrees.

    ``alike`` is a difference between boards that no one minds.
    """
    used = np.isfinite(effect) & np.isfinite(variance) & (variance > 0.0)
    boards = used.sum(axis=1)
    spare = (boards - 1) // 2
    odd = np.zeros(used.shape, dtype=bool)
    open_ = ~_agree(effect, variance, freedom, used, alike)
    contradictory = open_ & (spare == 0)
    for _ in range(used.shape[1] // 2):
        rows = np.flatnonzero(open_ & ~contradictory)
        if not len(rows):
            break
        worst = _worst(effect[rows], variance[rows], used[rows] & ~odd[rows], alike)
        odd[rows, worst] = True
        still = ~_agree(effect[rows], variance[rows], freedom[rows], used[rows] & ~odd[rows], alike)
        open_[rows] = still
        contradictory[rows] = still & (odd[rows].sum(axis=1) >= spare[rows])
    odd = np.where(contradictory[:, np.newaxis], used, odd)
    kept = np.where(contradictory[:, np.newaxis], used, used & ~odd)
    difference, total = _mean(effect, variance, kept)
    least, apart = _least(effect, variance, kept, difference, alike)
    return Combined(
        difference=difference,
        least=least,
        apart=apart,
        variance=np.where(total > 0.0, 1.0 / np.where(total > 0.0, total, 1.0), np.nan),
        odd=odd,
        contradictory=contradictory,
        used=kept,
    )


def _mean(effect: np.ndarray, variance: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    weight = np.where(kept, 1.0 / np.where(kept, variance, 1.0), 0.0)
    total = weight.sum(axis=1)
    mean = (weight * np.where(kept, effect, 0.0)).sum(axis=1) / np.where(total > 0.0, total, 1.0)
    return np.where(total > 0.0, mean, np.nan), total


def _least(
    effect: np.ndarray, variance: np.ndarray, kept: np.ndarray, difference: np.ndarray, alike: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest difference that leaving one board out makes, and how far apart that board is.

    Of a single board they are its own difference and 0.
    """
    found, apart = difference.copy(), np.zeros(difference.shape)
    several = kept.sum(axis=1) >= _FEWEST_TO_SPARE
    for board in range(kept.shape[1]):
        without = kept.copy()
        without[:, board] = False
        rest, total = _mean(effect, variance, without)
        lower = several & (rest < found)
        spread = variance[:, board] + 1.0 / np.where(total > 0.0, total, 1.0)
        spread = spread + alike**2 + (_SHARE_ALIKE * rest) ** 2
        found = np.where(lower, rest, found)
        apart = np.where(lower, (effect[:, board] - rest) / np.sqrt(spread), apart)
    return found, apart


def _q(effect: np.ndarray, variance: np.ndarray, kept: np.ndarray, alike: float) -> np.ndarray:
    """Return Cochran's Q, with what boards may differ by counted among their errors."""
    common, _ = _mean(effect, variance, kept)
    widened = variance + alike**2 + (_SHARE_ALIKE * common[:, np.newaxis]) ** 2
    centre, _ = _mean(effect, widened, kept)
    off = np.where(kept, effect - centre[:, np.newaxis], 0.0) ** 2
    return np.asarray((off / np.where(kept, widened, 1.0)).sum(axis=1))


def _agree(
    effect: np.ndarray,
    variance: np.ndarray,
    freedom: np.ndarray,
    kept: np.ndarray,
    alike: float,
) -> np.ndarray:
    """Say where Q is not significant; one board agrees with itself."""
    degrees = np.maximum(kept.sum(axis=1) - 1.0, 1.0)
    q = _q(effect, variance, kept, alike)
    return np.asarray(
        (scipy.special.fdtrc(degrees, np.maximum(freedom, 1.0), q / degrees) >= ODD_LEVEL)
        | (kept.sum(axis=1) < 2)
    )


def _worst(effect: np.ndarray, variance: np.ndarray, kept: np.ndarray, alike: float) -> np.ndarray:
    """Return the board without which the others agree best."""
    left = np.full(kept.shape, np.inf)
    for board in range(kept.shape[1]):
        without = kept.copy()
        without[:, board] = False
        left[:, board] = np.where(kept[:, board], _q(effect, variance, without, alike), np.inf)
    return np.asarray(left.argmin(axis=1))
