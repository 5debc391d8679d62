# SPDX-License-Identifier: Apache-2.0
"""How long a pull request keeps its boards busy: the formula of hil.run.plan.looks, for many at once.

A look of r boots a board, of which board b measures g groups of cases, takes

    max(r (12 s + g n/20 s of the busiest),  12 s + r sum over boards of g n/20 s)

for boards boot side by side (12 s a reset and boot) and take turns on the air (n samples at 20 a second a
group): either a board is never waited for, or the air never is. Flashing the two images is not in it.
"""

from __future__ import annotations

import numpy as np

from hil.run.plan.deadline import BOOT_S
from tools.gate_simulation.environment import Environment
from tools.gate_simulation.places import Looks
from tools.gate_simulation.suite import GROUPS, METRICS

SAMPLES_A_SECOND = 20.0
BUDGET_S = 15 * 60.0

_GROUP_OF = np.array(
    [next(g for g, cases in enumerate(GROUPS) if metric.case in cases) for metric in METRICS]
)


def look_s(boots: int, measuring: np.ndarray) -> np.ndarray:
    """Return the seconds (R,) that ``boots`` a board take; 0 where no board measures anything.

    ``measuring`` (R, boards) is what a boot of each board measures, in seconds.
    """
    longest, air = measuring.max(axis=1), measuring.sum(axis=1)
    seconds = np.maximum(boots * (BOOT_S + longest), BOOT_S + boots * air)
    return np.asarray(np.where(longest > 0, seconds, 0.0))


def measuring_s(still: np.ndarray, environment: Environment) -> np.ndarray:
    """Return the seconds that a boot of each board measures, (R, boards).

    ``still`` (R, decisions) are open, chip by chip.
    """
    of_chip = still.reshape(len(still), environment.chips, len(METRICS))
    groups = [of_chip[:, :, group == _GROUP_OF].any(axis=2) for group in range(len(GROUPS))]
    seconds = np.sum(groups, axis=0) * environment.samples / SAMPLES_A_SECOND
    return np.repeat(seconds, environment.boards_a_chip, axis=1)


def spend(
    last_look: np.ndarray, looks: Looks, environment: Environment, budget_s: float = BUDGET_S
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return looks taken, boots a board and seconds of each pull request.

    ``last_look`` (R, decisions) is the look at which each metric is decided. A look that would end beyond the
    budget is not begun; the first always is.
    """
    count = len(last_look)
    taken, boots, seconds = np.zeros(count, dtype=int), np.zeros(count), np.zeros(count)
    done, before = np.zeros(count, dtype=bool), 0
    for number, look in enumerate(looks):
        measuring = measuring_s(last_look >= number, environment)
        cost = look_s(sum(look) - before, measuring)
        fits = (seconds + cost <= budget_s) | (number == 0)
        done |= ~fits | ~measuring.any(axis=1)
        taken += ~done
        boots += np.where(done, 0, sum(look) - before)
        seconds += np.where(done, 0.0, cost)
        before = sum(look)
    return taken, boots, seconds


def boots_within(seconds: float, environment: Environment) -> int:
    """Return how many boots a board, of both roles together, all groups take at most so long."""
    everything = measuring_s(np.ones((1, environment.chips * len(METRICS)), dtype=bool), environment)
    costs = [float(look_s(boots, everything)[0]) for boots in range(1, 100)]
    return sum(cost <= seconds for cost in costs)
