# SPDX-License-Identifier: Apache-2.0
"""What the gate promises, against what the simulation finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.tools.gate_simulation.competitors import Rule
from tests.tools.gate_simulation.equal import Situations
from tests.tools.gate_simulation.results import Share, Situation
from tests.tools.gate_simulation.situations import CREEPS, Plan
from tests.tools.gate_simulation.suite import EFFECTS, MEDIAN_10, MEDIAN_20, UNCHANGED
from tests.tools.gate_simulation.table import Thresholds, with_error
from tests.tools.gate_simulation.walltime import BUDGET_S

FALSE_BLOCKS = 0.01
INCONCLUSIVE = 0.05
COVERAGE, COVERAGE_WITHIN = 0.95, 0.01
SHORT_RACKS = ("5 sessions", "10 sessions", "5 sessions, main crept by +10 %")
TYPICAL_RACKS = ("typical", *SHORT_RACKS, "no history", *(plan.name for plan in CREEPS))
POWER_AIMS = (("typical", MEDIAN_10, 0.85), ("typical", MEDIAN_20, 0.99), ("no history", MEDIAN_10, 0.80))


@dataclass(frozen=True)
class Aim:
    """``said`` is what was found, with its standard error where it has one."""

    text: str
    said: str
    kept: bool


def aims_of(
    found: Situations, rules: Sequence[Rule], equal: Thresholds, plans: Sequence[Plan], coverage: Share | None
) -> list[Aim]:
    """Return every aim that the situations at hand can tell of."""
    aims = [*_false_blocks(found), *_power(found), *_cost(found)]
    if coverage is not None:
        kept = abs(coverage.value - COVERAGE) <= COVERAGE_WITHIN
        aims.append(
            Aim("95 % intervals hold the true change in 94 to 96 %", with_error(coverage) + " %", kept)
        )
    return aims + _dominance(found, rules, equal, plans)


def _false_blocks(found: Situations) -> list[Aim]:
    aims = []
    for name in TYPICAL_RACKS:
        situation = found.get((name, UNCHANGED.name))
        if situation:
            share = situation.our_share()
            text = f"{name}: at most 1 % of unchanged pull requests blocked"
            aims.append(Aim(text, with_error(share) + " %", share.value <= FALSE_BLOCKS))
    return aims


def _power(found: Situations) -> list[Aim]:
    aims = []
    for name, effect, least in POWER_AIMS:
        situation = found.get((name, effect.name))
        if situation:
            share = situation.our_share()
            text = f"{name}: at least {100 * least:.0f} % of {effect.name} of a median caught"
            aims.append(Aim(text, with_error(share) + " %", share.value >= least))
    return aims


def _cost(found: Situations) -> list[Aim]:
    situation = found.get(("typical", UNCHANGED.name))
    if not situation:
        return []
    longest = float(situation.ours.seconds.max())
    undecided = Share.among(situation.ours.inconclusive)
    return [
        Aim(
            "typical: unchanged pull requests done within 15 minutes on four boards",
            f"{longest / 60:.1f} min at most, {situation.ours.seconds.mean() / 60:.1f} min on average",
            longest <= BUDGET_S,
        ),
        Aim(
            "typical: at most 5 % of unchanged pull requests inconclusive",
            with_error(undecided) + " %",
            undecided.value <= INCONCLUSIVE,
        ),
    ]


@dataclass(frozen=True)
class Standing:
    """A rule's highest share of false blocks on typical racks with 30 sessions, and its mean power there."""

    false_blocks: Share
    power: float
    error: float

    def beats(self, other: Standing) -> bool:
        """At least as good in both, and better in one by more than two standard errors."""
        fewer = other.false_blocks.value - self.false_blocks.value
        more = self.power - other.power
        if fewer < 0 or more < 0:
            return False
        doubt = np.hypot(self.false_blocks.error, other.false_blocks.error)
        return bool(fewer > 2 * doubt or more > 2 * np.hypot(self.error, other.error))


def _standing(unchanged: Sequence[Share], changed: Sequence[Share]) -> Standing | None:
    if not unchanged or not changed or not all(share.of for share in (*unchanged, *changed)):
        return None
    worst = max(unchanged, key=lambda share: share.value)
    power = float(np.mean([share.value for share in changed]))
    return Standing(
        worst, power, float(np.sqrt(np.sum([share.error**2 for share in changed])) / len(changed))
    )


def _dominance(
    found: Situations, rules: Sequence[Rule], equal: Thresholds, plans: Sequence[Plan]
) -> list[Aim]:
    calibrations = {plan.name: plan.calibration for plan in plans}
    racks = ("typical", *(plan.name for plan in CREEPS))
    unchanged = [found[name, UNCHANGED.name] for name in racks if (name, UNCHANGED.name) in found]
    changed = [found["typical", effect.name] for effect in EFFECTS if ("typical", effect.name) in found]
    ours = _standing([s.our_share() for s in unchanged], [s.our_share() for s in changed])
    if ours is None:
        return []

    def shares(situations: Sequence[Situation], rule: Rule, at_equal: bool) -> list[Share]:
        def threshold(situation: Situation) -> float:
            own = rule.threshold
            return equal.get((calibrations[situation.name], rule.name), own) if at_equal else own

        return [situation.share(rule.name, threshold(situation)) for situation in situations]

    better = []
    for rule in rules:
        for at_equal, how in ((False, "own threshold"), (True, "equal rate")):
            theirs = _standing(shares(unchanged, rule, at_equal), shares(changed, rule, at_equal))
            if theirs and theirs.beats(ours):
                better.append(f"{rule.name} ({how})")
    said = ", ".join(better) or f"none; ours {ours.false_blocks} % at worst, {100 * ours.power:.1f} % caught"
    return [Aim("no rule better on false blocks and power together", said, not better)]
