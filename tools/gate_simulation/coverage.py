# SPDX-License-Identifier: Apache-2.0
"""How often the gate's intervals hold what is true."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hil.gate.compare.values import Design, Seen
from tools.gate_simulation.draws import Draw
from tools.gate_simulation.ours import Values, chips_of, design_of, see, with_floor
from tools.gate_simulation.suite import METRICS, UNCHANGED, Metric

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
                sides = zip(mine.tolist(), base.tolist(), strict=True)
                held.append([_holds(draw, boards, metric, design) for boards in sides])
    return np.asarray(np.mean(held, axis=0))


def _holds(draw: Draw, boards: tuple[Values, Values], metric: Metric, design: Design) -> bool:
    seen = [see(boards, metric, design, number) for number in range(1, len(design.looks) + 1)]
    return all(one.low <= _truth(draw, one) <= one.high for one in seen)


def _truth(draw: Draw, seen: Seen) -> float:
    """Return what is true of the boards that count at a look.

    Where a board differs in its candidate alone, the interval speaks of the boards that were not left out.
    """
    left = [not odd for odd in seen.odd] if not all(seen.odd) else [True] * len(seen.odd)
    return draw.environment.odd * left[0] / sum(left)
