# SPDX-License-Identifier: Apache-2.0
"""Two plain rules for the same boots: Student's t of the last look, and with the boundaries of all looks.

Boots are logarithms, worse above, (pull requests, boards, boots); each board is a stratum.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from hil.gate.boundaries import of_looks
from hil.model import Looks


def p_values(candidate: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Return the one-sided p of Student's t: boards about their own means, one variance."""
    boards, mine, theirs = candidate.shape[-2], candidate.shape[-1], base.shape[-1]
    freedom = boards * (mine + theirs - 2)
    squares = sum((side.var(axis=-1) * side.shape[-1]).sum(axis=-1) for side in (candidate, base))
    error = np.sqrt(squares / freedom * (1 / mine + 1 / theirs) / boards)
    difference = (candidate.mean(axis=-1) - base.mean(axis=-1)).mean(axis=-1)
    score = np.divide(difference, error, out=np.zeros_like(difference), where=error > 0)
    return np.asarray(stats.t.sf(score, freedom))


def plain(candidate: np.ndarray, base: np.ndarray, looks: Looks, alpha: float) -> np.ndarray:
    """Return which pull requests the t-test blocks, which looks once, at the end."""
    mine, theirs = looks[-1]
    return p_values(candidate[..., :mine], base[..., :theirs]) < alpha


def simple(candidate: np.ndarray, base: np.ndarray, looks: Looks, alpha: float) -> np.ndarray:
    """Return which pull requests the t-test blocks at any of the looks."""
    found = np.zeros(candidate.shape[:-2], dtype=bool)
    for (mine, theirs), boundary in zip(looks, of_looks(looks, alpha), strict=True):
        found |= p_values(candidate[..., :mine], base[..., :theirs]) < stats.norm.sf(boundary)
    return found
