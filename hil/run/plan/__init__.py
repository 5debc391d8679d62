# SPDX-License-Identifier: Apache-2.0
"""What a run measures: boards, images, boots, cases."""

from hil.run.plan.deadline import deadline_s
from hil.run.plan.planning import (
    BoardPlan,
    Omitted,
    Plan,
    Stage,
    kept_plan,
    make_plan,
    ticks_hz_of,
)
from hil.run.plan.spreading import spread

__all__ = [
    "BoardPlan",
    "Omitted",
    "Plan",
    "Stage",
    "deadline_s",
    "kept_plan",
    "make_plan",
    "spread",
    "ticks_hz_of",
]
