# SPDX-License-Identifier: Apache-2.0
"""What the boots of one comparison say so far: the outcome, why, and the numbers on the metric's scale."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hil.gate.compare.boot_values import BoardBoots
from hil.gate.compare.scale import Scale
from hil.gate.compare.units import Unit
from hil.model import Outcome


@dataclass(frozen=True)
class Numbers:
    """On the metric's scale, larger is worse; NaN and None where there is none. Maps are by board.

    ``p`` is two-sided, of a fixed number of boots: what advice is judged by.
    """

    scale: Scale
    difference: float
    low: float
    high: float
    z: float
    boundary: float
    boot_deviation: float
    smallest_effect: float
    tolerance: float | None
    min_effect: float | None
    candidate: float
    other: float
    effects: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # difference, error
    odd: tuple[str, ...] = ()
    p: float | None = None
    pass_bound: float = math.nan


@dataclass(frozen=True)
class Finding:
    """``unit`` is as it was looked at; ``final`` says that more boots change nothing.

    ``note`` is what to know of a decision.
    """

    unit: Unit
    outcome: Outcome
    final: bool
    reason: str = ""
    look: int = 0
    boards: tuple[BoardBoots, ...] = ()
    numbers: Numbers | None = None
    note: str = ""

    @property
    def p(self) -> float | None:
        """The two-sided p value that advice is judged by, None where there is none."""
        return self.numbers.p if self.numbers else None

    def ending(self, words: str) -> Finding:
        """Return the finding with why it was not taken further added to its reason."""
        reason = f"{self.reason}, and {words}" if self.reason else words
        return replace(self, reason=reason)

    @property
    def is_decided(self) -> bool:
        return self.final and self.outcome in ("pass", "regressed", "improved")
