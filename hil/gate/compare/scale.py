# SPDX-License-Identifier: Apache-2.0
"""A metric's scale, on which boots are compared and larger is worse, and the way back to the figure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from hil.metrics.evaluation import Metric

_LARGEST_LOG = 700.0  # exp() of more is no float


@dataclass(frozen=True)
class Scale:
    """The logarithm where ``relative``, else the metric's unit; ``sign`` turns it so that larger is worse."""

    relative: bool
    sign: int

    def position(self, value: float, quantum: float) -> float:
        """Return where a boot's value lies; +inf of a timeout, and of nothing where more is better.

        Less than a step of the clock is a step: it has no better logarithm. NaN where there is none at all.
        """
        if not self.relative or math.isinf(value):
            return self.sign * value
        if 0 <= value < quantum:
            return self.sign * math.log(quantum)
        if value == 0 and self.sign < 0:
            return math.inf
        return self.sign * math.log(value) if value > 0 else math.nan

    def value(self, position: float) -> float:
        """Return the value that lies there, in the metric's unit."""
        here = self.sign * position
        return math.exp(min(here, _LARGEST_LOG)) if self.relative else here

    def worse(self, effect: float) -> float:
        """Return how far a change for the worse of this size, relative or in the unit, moves a value."""
        if not self.relative:
            return effect
        return math.log1p(effect) if self.sign > 0 else -math.log1p(-min(effect, 1.0 - 1e-9))

    def change(self, difference: float) -> float:
        """Return a difference as a change of the figure: positive where it grew."""
        grown = self.sign * difference
        return math.expm1(min(grown, _LARGEST_LOG)) if self.relative else grown

    def changes(self, low: float, high: float) -> tuple[float, float]:
        """Return the bounds of a difference as those of the change, the lower one first."""
        first, second = self.change(low), self.change(high)
        return (first, second) if self.sign > 0 else (second, first)

    def size(self, difference: float) -> float:
        """Return the size of a change for the worse that moves a value so far; the inverse of worse()."""
        return abs(self.change(difference)) if math.isfinite(difference) else math.inf

    def variance_floor(self, quantum: float, values: Iterable[float]) -> float:
        """Return the least variance of a boot's value: a step of the clock, squared, over 12."""
        if not self.relative:
            return quantum**2 / 12
        known = [max(abs(value), quantum) for value in values if math.isfinite(value) and value]
        if not known or not quantum:
            return 0.0
        typical = math.exp(fmean(math.log(value) for value in known))
        return (quantum / typical) ** 2 / 12


def scale_of(metric: Metric) -> Scale:
    return Scale(metric.scale == "log", 1 if metric.direction == "lower" else -1)
