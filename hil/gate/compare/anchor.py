# SPDX-License-Identifier: Apache-2.0
"""Each board's own difference between candidate and other, with the history as an anchor where it helps.

What the other's boots of this session say of its level is combined with the mean of the accepted epoch, by
their precisions. The two are set against each other first: where main has crept since the epoch was accepted,
or the session is an odd one, they disagree, and the history's precision shrinks by the square of the
disagreement, that of all boards together or of this one beyond its noise. What is left of a creep after this
is bounded by a fraction of the error, whatever the creep; a clear contradiction takes all weight away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.special

from hil.gate.compare.boots import Boots

DOUBT = 16.0  # times the squared disagreement of history and session is added to the history's variance
_CONTRADICTED_ALL = 2.58  # errors between all boards' other and the history: 1 % by chance
_CONTRADICTED_ONE = 3.29  # and between one board's: 0.1 %
_OWN_NOISE = 4.0  # a single board's squared disagreement counts beyond this many variances
_MOST_FREEDOM = 20.0  # by which the history's boot variance is held against this session's
_PLAIN_BOOTS = 2  # a winsorised mean of so few boots is a plain mean


@dataclass(frozen=True)
class BoardNoise:
    """The noise of a board as it is used: (R, B) each, guarded.

    ``clipped`` is the variance of a boot in a long winsorised mean, ``plain`` in a plain one, ``level`` that
    of the epoch's mean as a forecast of a session's level, infinite where there is none.
    """

    clipped: np.ndarray
    plain: np.ndarray
    freedom: np.ndarray
    mean: np.ndarray
    level: np.ndarray


@dataclass(frozen=True)
class Boards:
    """Shape (R, B): each board's difference, its variance and degrees of freedom; NaN where it has none.

    ``weight`` is the history's share of the anchor, ``boot_variance`` of one boot in this session.
    """

    effect: np.ndarray
    variance: np.ndarray
    freedom: np.ndarray
    weight: np.ndarray
    contradicted: np.ndarray
    boot_variance: np.ndarray


def boot_variance(noise: BoardNoise, count: np.ndarray) -> np.ndarray:
    """Return the variance of one boot in a winsorised mean of ``count``."""
    extra = np.minimum(1.0, (_PLAIN_BOOTS / np.maximum(count, 1.0)) ** 2)
    return np.asarray(noise.clipped + (noise.plain - noise.clipped) * extra)


def level_variance(
    session_variance: np.ndarray,
    clipped: np.ndarray,
    sessions: np.ndarray,
    epoch_sessions: np.ndarray,
    epoch_boots: np.ndarray,
) -> np.ndarray:
    """Return the variance of the epoch's mean as a forecast of a session's level; inf where there is none.

    A deviation between sessions that is known from few of them is taken one standard error larger, so that it
    is not 0 by luck.
    """
    boots = np.maximum(epoch_boots, 1.0)
    each = boots / np.maximum(epoch_sessions, 1.0)
    error = (session_variance + clipped / each) * np.sqrt(2.0 / np.maximum(sessions - 1.0, 1.0))
    level = (session_variance + error) * (1.0 + 1.0 / np.maximum(epoch_sessions, 1.0)) + clipped / boots
    return np.asarray(np.where((epoch_sessions > 0) & np.isfinite(level), level, np.inf))


def anchored(candidate: Boots, other: Boots, noise: BoardNoise) -> Boards:
    """Return each board's difference where the history knows the noise; see the module."""
    usable = (candidate.count > 0) & (other.count > 0)
    own_freedom = candidate.count + other.count - 2.0
    swollen = _swollen(candidate.squares + other.squares, own_freedom, noise)
    of_candidate = boot_variance(noise, candidate.count) * swollen / np.maximum(candidate.count, 1)
    of_other = boot_variance(noise, other.count) * swollen / np.maximum(other.count, 1)
    mean = np.where(np.isfinite(noise.level), noise.mean, other.mean)
    precision, contradicted = _history_precision(other.mean - mean, of_other, noise.level, usable)
    total = 1.0 / of_other + precision
    anchor = other.mean + (mean - other.mean) * precision / total
    gap = np.where(usable, candidate.mean - anchor, np.nan)
    return Boards(
        effect=gap,
        variance=np.where(usable, of_candidate + 1.0 / total, np.nan),
        freedom=noise.freedom + own_freedom,
        weight=precision / total,
        contradicted=contradicted,
        boot_variance=boot_variance(noise, candidate.count) * swollen,
    )


def _swollen(squares: np.ndarray, freedom: np.ndarray, noise: BoardNoise) -> np.ndarray:
    """Return by how much this session's boots vary more than the history says, 1 at least."""
    held = np.minimum(noise.freedom, _MOST_FREEDOM)
    return np.asarray(np.maximum(1.0, (held + squares / noise.plain) / (held + np.maximum(freedom, 0.0))))


def _history_precision(
    gap: np.ndarray, of_other: np.ndarray, level: np.ndarray, usable: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the precision that the history's mean has as an anchor, and where it is contradicted."""
    known = usable & np.isfinite(level)
    expected = of_other + level
    weight = np.where(known, 1.0 / expected, 0.0)
    total = np.maximum(weight.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    together = (weight * np.where(known, gap, 0.0)).sum(axis=1, keepdims=True) / total
    contradicted = (np.abs(together) * np.sqrt(total) > _CONTRADICTED_ALL) | (
        np.abs(gap) > _CONTRADICTED_ONE * np.sqrt(expected)
    )
    doubt = DOUBT * np.maximum(together**2, gap**2 - _OWN_NOISE * expected)
    precision = np.where(known & ~contradicted, 1.0 / (level + doubt), 0.0)
    return precision, np.asarray(contradicted & known)


def expected_precision(noise: BoardNoise, boots: np.ndarray, boards: np.ndarray) -> np.ndarray:
    """Return the precision that the history's mean is expected to have: what boundaries are planned with."""
    expected = noise.clipped / np.maximum(boots, 1.0) + noise.level
    doubt = DOUBT * expected / np.maximum(boards, 1.0)[:, np.newaxis]
    return np.asarray(np.where(np.isfinite(noise.level), 1.0 / (noise.level + doubt), 0.0))


def by_itself(candidate: Boots, other: Boots, floor: float) -> Boards:
    """Return each board's difference where nothing is known of the noise: its variance is all boards' own.

    ``freedom`` is of the pooled variance, after Satterthwaite, so that a board noisier than the others counts
    for what it is.
    """
    usable = (candidate.count > 0) & (other.count > 0)
    own = np.where(usable, candidate.count + other.count - 2.0, 0.0)
    squares = np.where(usable, candidate.squares + other.squares, 0.0)
    total = squares.sum(axis=1)
    freedom = own.sum(axis=1)
    each = np.where(own > 0, squares**2 / np.maximum(own, 1.0), 0.0).sum(axis=1)
    effective = np.where(each > 0.0, total**2 / np.where(each > 0.0, each, 1.0), freedom)
    pooled = np.maximum(total / np.maximum(freedom, 1.0), floor)
    pooled = np.where(freedom > 0, pooled, np.nan)[:, np.newaxis] + np.zeros(own.shape)
    per_boot = 1.0 / np.maximum(candidate.count, 1) + 1.0 / np.maximum(other.count, 1)
    return Boards(
        effect=np.where(usable, candidate.mean - other.mean, np.nan),
        variance=np.where(usable, pooled * per_boot, np.nan),
        freedom=effective[:, np.newaxis] + np.zeros(own.shape),
        weight=np.zeros(own.shape),
        contradicted=np.zeros(own.shape, dtype=bool),
        boot_variance=pooled,
    )


def student_boundary(boundary: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """Return what Student's t exceeds as rarely as a normal z exceeds ``boundary``."""
    return np.asarray(-scipy.special.stdtrit(np.maximum(freedom, 1.0), scipy.special.ndtr(-boundary)))
