# SPDX-License-Identifier: Apache-2.0
"""The rows: what is simulated, and which effects are put on it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tests.tools.gate_simulation.draws import Environment
from tests.tools.gate_simulation.model import NOISY, QUIET, TYPICAL
from tests.tools.gate_simulation.suite import EFFECTS, MEDIAN_5, MEDIAN_10, MEDIAN_20, UNCHANGED, Effect


@dataclass(frozen=True)
class Plan:
    """An environment and the effects under which it is judged; ``calibration`` names the plan whose unchanged
    pull requests set the other rules' thresholds at an equal rate of false blocks."""

    environment: Environment
    effects: tuple[Effect, ...] = (UNCHANGED, MEDIAN_10)
    calibration: str = "typical"

    @property
    def name(self) -> str:
        return self.environment.name


def _creep(percent: int) -> Plan:
    name = f"main crept by {percent:+d} %".replace("-", "−")
    return Plan(Environment(name, creep=float(np.log1p(percent / 100))))


CREEPS = tuple(_creep(percent) for percent in (-10, -5, 5, 10))

PLANS = (
    Plan(Environment("typical"), (UNCHANGED, *EFFECTS)),
    Plan(Environment("quiet", QUIET), (UNCHANGED, MEDIAN_5, MEDIAN_10), "quiet"),
    Plan(Environment("noisy", NOISY), (UNCHANGED, MEDIAN_10, MEDIAN_20), "noisy"),
    Plan(Environment("5 sessions", sessions=5), (UNCHANGED, MEDIAN_10, MEDIAN_20), "5 sessions"),
    Plan(Environment("10 sessions", sessions=10), (UNCHANGED, MEDIAN_10), "5 sessions"),
    Plan(
        Environment("5 sessions, main crept by +10 %", sessions=5, creep=float(np.log1p(0.10))),
        (UNCHANGED, MEDIAN_10),
        "5 sessions",
    ),
    Plan(Environment("no history", sessions=0), (UNCHANGED, MEDIAN_5, MEDIAN_10, MEDIAN_20), "no history"),
    *CREEPS,
    Plan(Environment("one board drifts 1 % a boot", drift=0.01)),
    Plan(Environment("one board drifts 3 % a boot", drift=0.03)),
    Plan(Environment("one board steps by 30 % in the run", step=float(np.log1p(0.30)))),
    Plan(Environment("one board contradicts by 30 %", odd=float(np.log1p(0.30)))),
    Plan(Environment("bad boots: 15 %", replace(TYPICAL, bad_share=0.15))),
    Plan(Environment("bistable: 30 % of boots 15 % slower", bistable=float(np.log1p(0.15)))),
    Plan(Environment("one board only", boards=1)),
)
