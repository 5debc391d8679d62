"""How long boots take on a rack, about: what the looks of a comparison are planned with."""

from __future__ import annotations

from collections.abc import Sequence

from hil.gate.looks import Plan

BOOT_S = 12.0  # switching the slot, reset, boot, network


def look_s(boots: int, measuring_s: Sequence[float]) -> float:
    """Return how long ``boots`` of each board take, where a boot of each measures so long, in seconds.

    Boards boot side by side and take turns on the air: either a board is never waited for, or the air never
    is.
    """
    if not measuring_s:
        return 0.0
    return max(boots * (BOOT_S + max(measuring_s)), BOOT_S + boots * sum(measuring_s))


def affordable(looks: Plan, measuring_s: Sequence[float], budget_s: float) -> Plan:
    """Return the looks up to the first that would end beyond the budget if nothing were decided before it.

    Something mostly is, so that one is reached all the same; the ones after it hardly ever, and boundaries
    that are planned for them would cost power at those that are. The first is always there.
    """
    ends = [look_s(sum(look), measuring_s) for look in looks]
    within = sum(end <= budget_s for end in ends)
    return looks[: within + 1]
