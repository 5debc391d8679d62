# SPDX-License-Identifier: Apache-2.0
"""How long a pull request keeps four boards busy, as a formula.

A look of r boots a board at which g groups of cases are still open takes

    max(r (12 s + g n/20 s),  12 s + boards r g n/20 s)

for boards boot side by side (12 s a reset and boot) and take turns on the air (n samples at 20 a second a
group): either a board is never waited for, or the air never is. Flashing the two images is not in it.
"""

from __future__ import annotations

import numpy as np

from hil.run.plan.deadline import BOOT_S
from tests.tools.gate_simulation.model import SAMPLES
from tests.tools.gate_simulation.suite import GROUPS, METRICS

SAMPLES_A_SECOND = 20.0
BUDGET_S = 15 * 60.0

_GROUP_OF = np.array(
    [next(g for g, cases in enumerate(GROUPS) if metric.case in cases) for metric in METRICS]
)


def look_s(boots: np.ndarray | int, groups: np.ndarray | int, boards: int) -> np.ndarray:
    """Return the seconds that ``boots`` a board take with so many ``groups`` open; 0 where none is."""
    measuring = np.asarray(groups) * SAMPLES / SAMPLES_A_SECOND
    seconds = np.maximum(boots * (BOOT_S + measuring), BOOT_S + boards * boots * measuring)
    return np.asarray(np.where(np.asarray(groups) > 0, seconds, 0.0))


def spend(
    last_look: np.ndarray, looks: tuple[tuple[int, int], ...], boards: int, budget_s: float = BUDGET_S
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return looks taken, boots a board and seconds of each pull request.

    ``last_look`` (pull requests, metrics) is the look at which each metric is decided. A look that would end
    beyond the budget is not begun; the first always is.
    """
    count = len(last_look)
    taken, boots, seconds = np.zeros(count, dtype=int), np.zeros(count), np.zeros(count)
    done, before = np.zeros(count, dtype=bool), 0
    for number, look in enumerate(looks):
        still = last_look >= number
        groups = sum(still[:, group == _GROUP_OF].any(axis=1).astype(int) for group in range(len(GROUPS)))
        cost = look_s(sum(look) - before, np.asarray(groups), boards)
        fits = (seconds + cost <= budget_s) | (number == 0)
        done |= ~fits | (np.asarray(groups) == 0)
        taken += ~done
        boots += np.where(done, 0, sum(look) - before)
        seconds += np.where(done, 0.0, cost)
        before = sum(look)
    return taken, boots, seconds
