# SPDX-License-Identifier: Apache-2.0
"""Exact figures (sizes, bytes on the wire, low-water marks): they have no noise, so one boot says it all."""

from __future__ import annotations

import numpy as np

from hil.gate.compare.sequential import IMPROVED, INCONCLUSIVE, PASS, REGRESSED, Decisions, Design, blank


def decide_exact(candidate: np.ndarray, other: np.ndarray, design: Design) -> Decisions:
    """Decide at the first boots of both roles; arrays as in decide(), in the metric's unit, larger is worse.

    Growth beyond the tolerance on any board regresses; a decrease by more than ``min_effect`` on all boards
    improves; what varies between the boots of one role and board, or is infinite, is inconclusive: it is no
    exact figure then. Only the first look counts. Undecided where no board has boots of both roles in it.
    """
    candidate = np.asarray(candidate, dtype=float)[:, :, : design.looks[0][0]]
    other = np.asarray(other, dtype=float)[:, :, : design.looks[0][1]]
    of_candidate, steady_candidate = _figure(candidate)
    of_other, steady_other = _figure(other)
    there = ~np.isnan(of_candidate) & ~np.isnan(of_other)
    steady = steady_candidate & steady_other & np.isfinite(of_candidate) & np.isfinite(of_other)
    effects = np.where(there & steady, of_candidate - np.where(np.isfinite(of_other), of_other, 0.0), np.nan)
    some = there.any(axis=1)
    worst = np.where(there & steady, effects, -np.inf).max(axis=1, initial=-np.inf)
    varies = some & (there & ~steady).any(axis=1)
    state = np.select(
        [some & (worst > design.tolerance), varies, some & (-worst > design.min_effect), some],
        [REGRESSED, INCONCLUSIVE, IMPROVED, PASS],
        default=0,
    )
    difference = np.where(np.isfinite(worst), worst, np.nan)
    found = blank(*candidate.shape[:2])
    found.state[:], found.look[:] = state, np.where(some, 1, 0)
    for array in (found.difference, found.low, found.high):
        array[:] = difference
    found.error[:] = np.where(np.isfinite(worst), 0.0, np.nan)
    found.smallest_effect[:] = np.where(np.isfinite(worst), max(design.tolerance, 0.0), np.nan)
    found.effects[:], found.errors[:] = effects, np.where(np.isnan(effects), np.nan, 0.0)
    return found


def _figure(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the figure of each board (R, B), NaN without a boot, and whether it is the same in all boots."""
    there = ~np.isnan(values)
    highest = np.where(there, values, -np.inf).max(axis=2, initial=-np.inf)
    lowest = np.where(there, values, np.inf).min(axis=2, initial=np.inf)
    return np.where(there.any(axis=2), highest, np.nan), highest == lowest
