# SPDX-License-Identifier: Apache-2.0
"""What the boots of one role say on each board: a mean that bad boots do not carry away, and their spread.

A boot now and then is far off (a reconnect, a mode of its own): each counts as at most CLIP deviations from
the median. Values that were never seen (timeouts) are infinite, and count as far beyond all that was seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CLIP = 2.0  # robust deviations of a boot
_FAR = 10.0  # robust deviations beyond everything seen: where an unseen value is put
_CLIP_SQUARES = 4.0  # deviations up to which a boot counts as spread


@dataclass(frozen=True)
class Boots:
    """Shape (R, B) each: boots there are, their winsorised mean, their squared deviations from it in all."""

    count: np.ndarray
    mean: np.ndarray
    squares: np.ndarray


def summarise(values: np.ndarray, deviation: np.ndarray) -> Boots:
    """Summarise the boots (R, B, K), NaN where there is none; ``deviation`` (R, B) is of one boot."""
    there = ~np.isnan(values)
    count = there.sum(axis=2)
    around = medians(values)[:, :, np.newaxis]
    limit = CLIP * deviation[:, :, np.newaxis]
    off = np.where(there, values - around, 0.0)
    of = np.maximum(count, 1)
    mean = around[:, :, 0] + np.clip(off, -limit, limit).sum(axis=2) / of
    reach = _CLIP_SQUARES * deviation[:, :, np.newaxis]
    residual = np.where(there, values - mean[:, :, np.newaxis], 0.0)
    squares = (np.clip(residual, -reach, reach) ** 2).sum(axis=2)
    return Boots(count, mean, squares)


def medians(values: np.ndarray) -> np.ndarray:
    """Return the median over the last axis of what is not NaN; NaN where nothing is."""
    count = (~np.isnan(values)).sum(axis=-1)
    ordered = np.sort(values, axis=-1)  # NaN comes last
    last = np.maximum(count - 1, 0)
    low = np.take_along_axis(ordered, (last // 2)[..., np.newaxis], axis=-1)[..., 0]
    high = np.take_along_axis(ordered, ((last + 1) // 2)[..., np.newaxis], axis=-1)[..., 0]
    return np.asarray(low + 0.5 * (high - low))


def bounded(
    candidate: np.ndarray, other: np.ndarray, deviation: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Put finite values, far beyond those seen on the board, in the place of infinite ones.

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
    reach = np.where(np.isnan(deviation), 3.0 * spread, _FAR * deviation)
    reach = np.maximum(reach, 2.0 * abs(tolerance))
    boots = (~np.isnan(other)).sum(axis=2)
    unseen = np.isinf(other).sum(axis=2)
    silent = ((2 * unseen > boots) | ~seen.any(axis=2))[:, :, np.newaxis]
    ceiling, floor = (highest + reach)[:, :, np.newaxis], (lowest - reach)[:, :, np.newaxis]

    def put(values: np.ndarray) -> np.ndarray:
        replaced = np.where(np.isposinf(values), ceiling, np.where(np.isneginf(values), floor, values))
        return np.asarray(np.where(silent, np.nan, replaced))

    return put(candidate), put(other)


def own_deviation(candidate: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the robust deviation of one boot (R,), from this session alone, all boards together.

    1.4826 times the median of the deviations from each board's and role's own median, each scaled for how few
    boots that is of; the plain deviation where more than half of the boots are equal.
    """
    parts = []
    for values in (candidate, other):
        count = (~np.isnan(values)).sum(axis=2, keepdims=True)
        scale = np.sqrt(count / np.maximum(count - 1.0, 1.0))
        parts.append(np.where(count > 1, (values - medians(values)[:, :, np.newaxis]) * scale, np.nan))
    residuals = np.concatenate(parts, axis=2).reshape(len(candidate), -1)
    robust = 1.4826 * medians(np.abs(residuals))
    there = np.maximum((~np.isnan(residuals)).sum(axis=1), 1)
    plain = np.sqrt(np.nansum(residuals**2, axis=1) / there)
    return np.asarray(np.where(robust > 0.0, robust, plain))
