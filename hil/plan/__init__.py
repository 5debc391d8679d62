"""What a run measures: boards, boots, cases."""

from hil.plan.planning import (
    BOOTS_MAX,
    BoardPlan,
    Omitted,
    Plan,
    deadline_s,
    make_plan,
)

__all__ = [
    "BOOTS_MAX",
    "BoardPlan",
    "Omitted",
    "Plan",
    "deadline_s",
    "make_plan",
]
