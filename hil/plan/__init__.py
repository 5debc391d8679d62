"""What a run measures: boards, boots, cases."""

from hil.plan.planning import (
    BoardPlan,
    Omitted,
    Plan,
    deadline_s,
    make_plan,
)

__all__ = [
    "BoardPlan",
    "Omitted",
    "Plan",
    "deadline_s",
    "make_plan",
]
