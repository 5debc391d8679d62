# SPDX-License-Identifier: Apache-2.0
"""The rows: what is simulated, and which effects are put on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tools.gate_simulation.environment import Environment
from tools.gate_simulation.model import NOISY, QUIET, TIGHT
from tools.gate_simulation.suite import (
    ALL_FAIL,
    EFFECTS,
    FAILURES,
    FASTER,
    MEDIAN_5,
    MEDIAN_10,
    MEDIAN_20,
    ONE_BOARD,
    ONE_BOARD_30,
    ONE_BOARD_FAILS,
    ONE_CHIP,
    QUARTER,
    TAIL,
    UNCHANGED,
    Effect,
)

MEDIANS = (MEDIAN_10, MEDIAN_20)


@dataclass(frozen=True)
class Plan:
    """An environment and the effects under which it is judged, beside unchanged pull requests.

    Where ``rivals``, the other rules judge it too, by 30 nights; ``calibration`` names the plan whose
    unchanged pull requests set their thresholds at an equal rate of false blocks. ``duel`` is the effect for
    which a t-test is asked too.
    """

    environment: Environment
    changes: tuple[Effect, ...] = (MEDIAN_10,)
    rivals: bool = False
    calibration: str = "typical"
    duel: Effect | None = None

    @property
    def name(self) -> str:
        return self.environment.name

    @property
    def effects(self) -> tuple[Effect, ...]:
        return (UNCHANGED, *self.changes)


def _creep(percent: int) -> Plan:
    name = f"main crept by {percent:+d} %".replace("-", "−")
    return Plan(Environment(name, creep=float(np.log1p(percent / 100))), rivals=True)


def _higher(percent: int) -> float:
    return float(np.log1p(percent / 100))


CREEPS = tuple(_creep(percent) for percent in (-10, -5, 5, 10))

TYPICAL = Plan(
    Environment("typical"),
    (*EFFECTS, FASTER, ONE_BOARD, ONE_BOARD_30, QUARTER),
    rivals=True,
)
LOUD = Plan(
    Environment("boots differ by 8 %", NOISY),
    MEDIANS,
    True,
    "boots differ by 8 %",
    MEDIAN_10,
)
ALONE = Plan(Environment("one board only", boards=1), (*MEDIANS, ALL_FAIL), rivals=True)
ODD = tuple(
    Plan(Environment(f"candidate +{percent} % on one board alone", odd=_higher(percent)), rivals=True)
    for percent in (10, 30)
)
CHIPS = Plan(Environment("two chips of two boards", chips=2), (MEDIAN_10, ONE_CHIP))

_NOISE = (
    Plan(
        Environment("boots differ by 2 %", QUIET),
        (MEDIAN_5, MEDIAN_10, TAIL, FASTER),
        True,
        "boots differ by 2 %",
    ),
    LOUD,
    Plan(Environment("boots with Student's tails", tails="t"), MEDIANS),
    Plan(Environment("boots with log-normal tails", tails="lognormal"), MEDIANS),
    Plan(
        Environment("tight modes, 20 % of boots +20 %", TIGHT, scatter=0.05, modes=(0.2, _higher(20))),
        MEDIANS,
    ),
    Plan(
        Environment("tight modes, 35 % of boots +20 %", TIGHT, scatter=0.05, modes=(0.35, _higher(20))),
        MEDIANS,
    ),
    Plan(Environment("wide modes, 35 % of boots +20 %", modes=(0.35, _higher(20))), MEDIANS),
    Plan(Environment("20 ms read in steps of 5 ms", quantum_ms=5.0), MEDIANS),
    Plan(Environment("stalls in 15 % of boots", stalls=0.15), MEDIANS),
)
_RUN = (
    Plan(Environment("one board drifts 1 % a boot", drift=0.01), rivals=True),
    Plan(Environment("all boards drift 1 % a boot", drift=0.01, all_drift=True), rivals=True),
    *ODD,
    Plan(Environment("bursts in 15 % of moments", bursts=0.15), MEDIANS, rivals=True),
    Plan(Environment("pull request 2 times as noisy", louder=2.0), MEDIANS, rivals=True),
    Plan(Environment("pull request 3 times as noisy", louder=3.0), MEDIANS, rivals=True),
)
_SHAPE = (
    ALONE,
    Plan(Environment("20 samples a boot", samples=20), MEDIANS),
    Plan(Environment("all metrics as one", common=1.0), MEDIANS),
    CHIPS,
)
_FAILING = tuple(
    Plan(Environment(f"{share:g} % of the base fail", loss_share=share / 100), (*FAILURES, ONE_BOARD_FAILS))
    for share in (0, 0.1)
)
_THREE = Plan(
    Environment("0 % of the base fail, three boards", boards=3, loss_share=0.0), (ALL_FAIL, ONE_BOARD_FAILS)
)

PLANS = (TYPICAL, *_NOISE, *_RUN, *CREEPS, *_SHAPE, *_FAILING, _THREE)
