# SPDX-License-Identifier: Apache-2.0
"""What the boots of each board say: the difference between candidate and other, and how sure it is.

A boot is one observation. Each board is compared with itself, and the variance of a boot is that of all
boards and both roles together, each about its own mean: the plain one, for a robust one is too small where a
firmware's boots have modes. Arrays are (R, B, K): comparisons, boards and boots; NaN where there is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.special

_FAR = 3.0  # spreads of what was seen: so far beyond it lies what was not


@dataclass(frozen=True)
class Boards:
    """``effect`` and its ``variance`` (R, B), NaN of a board without boots of both; of all boards together
    ``boot_variance`` and its degrees of ``freedom`` (R,)."""

    effect: np.ndarray
    variance: np.ndarray
    boot_variance: np.ndarray
    freedom: np.ndarray


def differences(candidate: np.ndarray, other: np.ndarray, floor: np.ndarray) -> Boards:
    """Return each board's difference; a boot varies by ``floor`` (R,) at least.

    ``freedom`` is Satterthwaite's, so that a board noisier than the others counts for what it is.
    """
    counts, means, squares = zip(_summary(candidate), _summary(other), strict=True)
    usable = (counts[0] > 0) & (counts[1] > 0)
    own = np.where(usable, counts[0] + counts[1] - 2.0, 0.0)
    off = np.where(usable, squares[0] + squares[1], 0.0)
    total, freedom = off.sum(axis=1), own.sum(axis=1)
    each = np.where(own > 0, off**2 / np.maximum(own, 1.0), 0.0).sum(axis=1)
    effective = np.where(each > 0.0, total**2 / np.where(each > 0.0, each, 1.0), freedom)
    boot = np.where(freedom > 0, np.maximum(total / np.maximum(freedom, 1.0), floor), np.nan)
    per_boot = 1.0 / np.maximum(counts[0], 1) + 1.0 / np.maximum(counts[1], 1)
    return Boards(
        effect=np.where(usable, means[0] - means[1], np.nan),
        variance=np.where(usable, boot[:, np.newaxis] * per_boot, np.nan),
        boot_variance=boot,
        freedom=effective,
    )


def _summary(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how many boots there are, their mean, and their squared deviations from it in all."""
    there = ~np.isnan(values)
    count = there.sum(axis=2)
    mean = np.where(there, values, 0.0).sum(axis=2) / np.maximum(count, 1)
    off = np.where(there, values - mean[:, :, np.newaxis], 0.0)
    return count, mean, (off**2).sum(axis=2)


def bounded(candidate: np.ndarray, other: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Put finite values, beyond all that the board has shown, in the place of infinite ones (timeouts).

    A board says nothing, and is all NaN, where most boots of the other role are infinite: nothing can be
    compared with what was never seen.
    """
    both = np.concatenate([candidate, other], axis=2)
    if not np.isinf(both).any():
        return candidate, other
    seen = np.isfinite(both)
    highest = np.where(seen, both, -np.inf).max(axis=2)
    lowest = np.where(seen, both, np.inf).min(axis=2)
    spread = np.nan_to_num(highest - lowest, nan=0.0, posinf=0.0, neginf=0.0)
    reach = np.maximum(_FAR * spread, 2.0 * abs(tolerance))
    boots = (~np.isnan(other)).sum(axis=2)
    unseen = np.isinf(other).sum(axis=2)
    silent = ((2 * unseen > boots) | ~seen.any(axis=2))[:, :, np.newaxis]
    ceiling, floor = (highest + reach)[:, :, np.newaxis], (lowest - reach)[:, :, np.newaxis]

    def put(values: np.ndarray) -> np.ndarray:
        replaced = np.where(np.isposinf(values), ceiling, np.where(np.isneginf(values), floor, values))
        return np.asarray(np.where(silent, np.nan, replaced))

    return put(candidate), put(other)


def student_boundary(boundary: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """Return what Student's t exceeds as rarely as a normal z exceeds ``boundary``."""
    return np.asarray(-scipy.special.stdtrit(np.maximum(freedom, 1.0), scipy.special.ndtr(-boundary)))
