# SPDX-License-Identifier: Apache-2.0
"""Whether some other rule is better than our gate on false blocks and power together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tools.gate_simulation.competitors import Rule
from tools.gate_simulation.equal import Situations
from tools.gate_simulation.results import Share, Situation
from tools.gate_simulation.situations import CREEPS, TYPICAL
from tools.gate_simulation.suite import EFFECTS, UNCHANGED

Thresholds = Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class Standing:
    """A rule's highest share of false blocks on typical racks with 30 nights, and its mean power there."""

    false_blocks: Share
    power: float
    error: float

    @classmethod
    def of(cls, unchanged: Sequence[Share], changed: Sequence[Share]) -> Standing | None:
        if not unchanged or not changed or not all(share.of for share in (*unchanged, *changed)):
            return None
        worst = max(unchanged, key=lambda share: share.value)
        power = float(np.mean([share.value for share in changed]))
        return cls(worst, power, float(np.sqrt(np.sum([share.error**2 for share in changed])) / len(changed)))

    def beats(self, other: Standing) -> bool:
        """At least as good in both, and better in one by more than two standard errors."""
        fewer = other.false_blocks.value - self.false_blocks.value
        more = self.power - other.power
        if fewer < 0 or more < 0:
            return False
        doubt = np.hypot(self.false_blocks.error, other.false_blocks.error)
        return bool(fewer > 2 * doubt or more > 2 * np.hypot(self.error, other.error))


def better_rules(
    found: Situations, rules: Sequence[Rule], equal: Thresholds
) -> tuple[Standing | None, list[str]]:
    """Return how our gate stands, None where it cannot be told, and the names of rules that are better."""
    names = (TYPICAL.name, *(plan.name for plan in CREEPS))
    unchanged = [found[name, UNCHANGED.name] for name in names if (name, UNCHANGED.name) in found]
    changed = [found[TYPICAL.name, effect.name] for effect in EFFECTS if (TYPICAL.name, effect.name) in found]
    ours = Standing.of([s.our_share() for s in unchanged], [s.our_share() for s in changed])
    better = []
    for rule in rules if ours else ():
        at_equal = equal.get((TYPICAL.name, rule.name), rule.threshold)
        for threshold, how in ((rule.threshold, "own threshold"), (at_equal, "equal rate")):
            theirs = Standing.of(*(_shares(part, rule, threshold) for part in (unchanged, changed)))
            if ours and theirs and theirs.beats(ours):
                better.append(f"{rule.name} ({how})")
    return ours, better


def _shares(situations: Sequence[Situation], rule: Rule, threshold: float) -> list[Share]:
    return [situation.share(rule.name, threshold) for situation in situations]
