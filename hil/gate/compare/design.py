# SPDX-License-Identifier: Apache-2.0
"""What a comparison that grows is decided by, and what is decided: see hil.gate.sequential.

Arrays have a leading axis R of independent comparisons, B boards and K boots; a boot that is not there is
NaN. Values are on the metric's scale, "larger is worse" already, so that every test is one-sided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

UNDECIDED, PASS, REGRESSED, IMPROVED, INCONCLUSIVE = range(5)

# Boots a board, (candidate, other), after which it is judged. A base with fewer boots than the candidate
# leans on the history, and does worse where main has crept away from it (docs/explain/gate-simulation.md).
LOOKS = ((2, 2), (4, 4), (6, 6), (9, 9), (12, 12))


@dataclass(frozen=True)
class Noise:
    """What the history says of a series on each board; shape (R, B) each, NaN where it says nothing.

    ``boot_variance`` (v_b) and ``session_variance`` (v_s) are of boot values on the metric's scale,
    ``deviation`` the robust deviation of one boot (to winsorise by), ``sessions`` how many sessions the
    variances are from. ``mean`` is that of the accepted epoch, from ``epoch_sessions`` sessions and
    ``epoch_boots`` boots in all; 0 sessions where none is accepted. ``plain_variance`` is that of a boot when
    none is winsorised, ``freedom`` the degrees of freedom of both; the module noise finds them.
    """

    boot_variance: np.ndarray
    session_variance: np.ndarray
    deviation: np.ndarray
    sessions: np.ndarray
    mean: np.ndarray
    epoch_sessions: np.ndarray
    epoch_boots: np.ndarray
    plain_variance: np.ndarray | None = None
    freedom: np.ndarray | None = None

    def each(self, change: Callable[[np.ndarray], np.ndarray]) -> Noise:
        """Return the same with every array changed."""
        found: dict[str, Any] = {
            name: None if value is None else change(np.asarray(value)) for name, value in vars(self).items()
        }
        return Noise(**found)

    def of(self, rows: np.ndarray) -> Noise:
        """Return that of some comparisons."""
        return self.each(lambda value: value[rows])


@dataclass(frozen=True)
class Design:
    """How comparisons are decided. ``alpha`` and ``beta`` are of one decision; ``tolerance`` and
    ``min_effect`` are on the metric's scale; ``variance_floor`` is the clock's quantum squared over 12;
    ``kappa`` >= 1 widens.
    """

    looks: tuple[tuple[int, int], ...]
    alpha: float
    beta: float
    tolerance: float
    min_effect: float
    kappa: float = 1.0
    variance_floor: float = 0.0


@dataclass(frozen=True)
class Decisions:
    """One element a comparison, shape (R,), unless said. ``state`` is UNDECIDED … INCONCLUSIVE.

    Undecided and inconclusive ones show the last look that there is data for. ``low`` and ``high`` are the
    repeated confidence interval, ``pass_bound`` the largest difference that the test of passing leaves.
    ``odd`` (R, B) marks boards that contradict the others and were left out;
    ``effects`` and ``errors`` (R, B) are each board's own difference and its standard error.
    ``history_weight`` is the share of the anchor that the history has, ``contradicted`` (R, B) whether this
    session's base contradicts it.
    """

    state: np.ndarray
    look: np.ndarray
    difference: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    pass_bound: np.ndarray
    z: np.ndarray
    boundary: np.ndarray
    boot_deviation: np.ndarray
    session_deviation: np.ndarray
    smallest_effect: np.ndarray
    history_weight: np.ndarray
    contradicted: np.ndarray
    odd: np.ndarray
    effects: np.ndarray
    errors: np.ndarray
