# SPDX-License-Identifier: Apache-2.0
"""How often the gate's intervals hold what is true."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hil.gate.compare.sequential import Design, decide, trace
from tests.tools.gate_simulation.draws import Draw
from tests.tools.gate_simulation.ours import chips_of, design_of, with_floor
from tests.tools.gate_simulation.suite import METRICS, UNCHANGED

LEVEL = 0.95


@dataclass(frozen=True)
class Coverage:
    """A share of intervals, and its standard error: metrics of a pull request are no independent ones."""

    value: float
    error: float

    @classmethod
    def of(cls, held: np.ndarray) -> Coverage:
        """Return it of the share of intervals of each pull request (R,) that hold."""
        return cls(float(held.mean()), float(held.std(ddof=1) / np.sqrt(len(held))))

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} ±{100 * self.error:.1f}"


def held_by(draw: Draw) -> np.ndarray:
    """Return of each unchanged pull request (R,) how many of its intervals hold the true change.

    All metrics on a logarithm, of all chips; an interval holds where those of all looks do, so that it does
    whenever one stops. The gate's own intervals are of the level of its alpha, 99.8 %; here they are asked
    for at 95 %.
    """
    held = []
    for candidate, other in chips_of(draw, UNCHANGED):
        for index, metric in enumerate(METRICS):
            if metric.scale == "log":
                mine, base = candidate[:, index], other[:, index]
                design = design_of(metric, draw.environment, (1 - LEVEL) / 2)
                design = with_floor(design, metric, draw.environment, base)
                seen = trace(mine, base, design)
                out = np.abs(seen.difference - _truth(draw, mine, base, design)) > seen.boundary * seen.error
                held.append(~out.any(axis=1))
    return np.asarray(np.mean(held, axis=0))


def _truth(draw: Draw, candidate: np.ndarray, other: np.ndarray, design: Design) -> np.ndarray | float:
    """Return what is true of the boards that count at each look, (R, looks).

    Where a board differs in its candidate alone, the interval speaks of the boards that were not left out.
    """
    if not draw.environment.odd:
        return 0.0
    columns = []
    for look in design.looks:
        odd = decide(candidate, other, replace(design, looks=(look,))).odd
        left = ~odd if odd.shape[1] else odd
        left = np.where(left.any(axis=1, keepdims=True), left, True)
        columns.append(draw.environment.odd * left[:, 0] / left.sum(axis=1))
    return np.stack(columns, axis=1)
