# SPDX-License-Identifier: Apache-2.0
"""Thresholds of the other rules at one rate of false blocks: as if each had been tuned to the rack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tools.gate_simulation.competitors import Rule
from tools.gate_simulation.results import Situation
from tools.gate_simulation.situations import Plan
from tools.gate_simulation.suite import UNCHANGED

# Our gate may block so many unchanged pull requests; it blocks fewer, so this favours the others.
EQUAL_RATE = 0.01

Situations = Mapping[tuple[str, str], Situation]


def threshold_at(scores: np.ndarray, rate: float = EQUAL_RATE) -> float:
    """Return the lowest threshold that at most ``rate`` of the scores lie beyond."""
    ordered = np.sort(scores)
    beyond = int(np.floor(rate * len(ordered)))
    return float(ordered[len(ordered) - 1 - beyond])


def equal_thresholds(
    plans: Sequence[Plan], situations: Situations, rules: Sequence[Rule]
) -> dict[tuple[str, str], float]:
    """Return the thresholds by calibration and rule, from unchanged pull requests."""
    found = {}
    for plan in plans:
        situation = situations.get((plan.calibration, UNCHANGED.name))
        for rule in rules if situation else ():
            scores = situation.scores.get(rule.name) if situation else None
            if scores is not None:
                found[plan.calibration, rule.name] = threshold_at(scores)
    return found
