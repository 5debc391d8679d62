# SPDX-License-Identifier: Apache-2.0
"""What a run measures: boards, images, boots, cases."""

from hil.run.plan.deadline import deadline_s
from hil.run.plan.planning import BOOTS_MAX, BoardPlan, Omitted, Plan, Stage, make_plan, ticks_hz_of

__all__ = [
    "BOOTS_MAX",
    "BoardPlan",
    "Omitted",
    "Plan",
    "Stage",
    "deadline_s",
    "make_plan",
    "ticks_hz_of",
]
