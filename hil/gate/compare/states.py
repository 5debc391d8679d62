# SPDX-License-Identifier: Apache-2.0
"""The states of hil.gate.compare.sequential in the words of a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from hil.gate.compare.boot_values import BoardBoots
from hil.gate.compare.sequential import IMPROVED, INCONCLUSIVE, PASS, REGRESSED, UNDECIDED
from hil.model import Outcome

CONTRADICT = "its boards contradict each other"
DIFFER = "its boots differ too much to decide"
_OUTCOMES: dict[int, tuple[Outcome, bool]] = {
    UNDECIDED: ("inconclusive", False),
    PASS: ("pass", True),
    REGRESSED: ("regressed", True),
    IMPROVED: ("improved", True),
    INCONCLUSIVE: ("inconclusive", True),
}


def outcome_of(state: int) -> tuple[Outcome, bool, str]:
    """Return outcome, whether more boots change nothing, and the reason of what is undecided."""
    outcome, final = _OUTCOMES[state]
    return outcome, final, DIFFER if outcome == "inconclusive" else ""


def of_boards(
    outcome: Outcome, reason: str, odd: Sequence[str], boards: Sequence[BoardBoots]
) -> tuple[Outcome, str]:
    """Return outcome and reason once it is known which boards are odd: where all are, nothing is decided."""
    if len(odd) > 1 and len(odd) == len(boards):
        return "inconclusive", CONTRADICT
    return outcome, CONTRADICT if odd and reason == DIFFER else reason
