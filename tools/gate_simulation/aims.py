# SPDX-License-Identifier: Apache-2.0
"""What the gate promises, against what the simulation finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tools.gate_simulation.competitors import Rule
from tools.gate_simulation.dominance import Thresholds, better_rules
from tools.gate_simulation.duel import Duel
from tools.gate_simulation.results import Share, Situation
from tools.gate_simulation.simulate import Found
from tools.gate_simulation.situations import ALONE, CHIPS, LOUD, ODD, TYPICAL, Plan
from tools.gate_simulation.suite import (
    ALL_FAIL,
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
from tools.gate_simulation.table import with_error
from tools.gate_simulation.walltime import BUDGET_S

FALSE_BLOCKS, FALSE_BLOCKS_ODD = 0.01, 0.02
COVERAGE, COVERAGE_WITHIN = 0.95, 0.015
WHOLE_ALPHA_POWER = 0.70
MEAN_S = 10 * 60.0
FOUR_BOARDS = 4
SLOW_PASSES = 0.02
CAUGHT = ((MEDIAN_10, 0.95), (MEDIAN_20, 0.99))
UNDECIDED = ((TYPICAL, 0.05), (LOUD, 0.20), (ALONE, 0.20))
BLOCKED = ((TYPICAL, TAIL, 0.80), (CHIPS, ONE_CHIP, 0.80))


@dataclass(frozen=True)
class Aim:
    """``said`` is what was found, with its standard error where it has one."""

    text: str
    said: str
    kept: bool


def aims_of(found: Found, rules: Sequence[Rule], equal: Thresholds, plans: Sequence[Plan]) -> list[Aim]:
    """Return every aim that the situations at hand can tell of."""
    parts: tuple[Callable[[Found, Sequence[Plan]], Iterable[Aim]], ...] = (
        _false_blocks, _power, _duels, _undecided, _cost, _coverage, _slow, _failures
    )  # fmt: skip
    return [*(aim for part in parts for aim in part(found, plans)), *_dominance(found, rules, equal)]


def _at_most(text: str, share: Share, most: float, also: str = "") -> Aim:
    said = f"{with_error(share)} %{also}"
    return Aim(text, said, not share.value > most)  # a share of none is kept


def _at_least(text: str, share: Share, least: float) -> Aim:
    return Aim(text, f"{with_error(share)} %", bool(share.value >= least))


def _false_blocks(found: Found, plans: Sequence[Plan]) -> Iterator[Aim]:
    for plan in plans:
        most = FALSE_BLOCKS_ODD if plan in ODD else FALSE_BLOCKS
        for situation in _some(found, plan, UNCHANGED):
            text = f"{plan.name}: at most {100 * most:.0f} % of unchanged pull requests blocked"
            yield _at_most(text, situation.our_share(), most)


def _power(found: Found, _plans: Sequence[Plan]) -> Iterator[Aim]:
    for effect, least in CAUGHT:
        for situation in _some(found, TYPICAL, effect):
            text = f"{TYPICAL.name}: at least {100 * least:.0f} % of {effect.name} of a median caught"
            yield _at_least(text, situation.our_share(), least)
    for plan, effect, least in BLOCKED:
        for situation in _some(found, plan, effect):
            text = f"{plan.name}, {effect.name}: at least {100 * least:.0f} % blocked"
            yield _at_least(text, Share.among(situation.ours.blocked), least)


def _duels(found: Found, _plans: Sequence[Plan]) -> Iterator[Aim]:
    for name, duel in found.duels.items():
        for (ours, theirs), alpha in (
            (duel.divided, "alpha shared by ten metrics"),
            (duel.whole, "all of alpha"),
        ):
            text = f"{name}, {alpha}: +10 % caught no less often than by a t-test in the same wall time"
            yield Aim(text, _of_both(ours, theirs, duel), ours.value >= theirs.value)
        text = f"{name}, all of alpha: at least {100 * WHOLE_ALPHA_POWER:.0f} % of +10 % caught"
        yield _at_least(text, duel.whole[0], WHOLE_ALPHA_POWER)


def _of_both(ours: Share, theirs: Share, duel: Duel) -> str:
    boots = f"{duel.boots[0]} + {duel.boots[1]} boots a board"
    return f"{with_error(ours)} %, the t-test with {boots} {with_error(theirs)} %"


def _undecided(found: Found, _plans: Sequence[Plan]) -> Iterator[Aim]:
    for plan, most in UNDECIDED:
        for situation in _some(found, plan, UNCHANGED):
            text = f"{plan.name}: at most {100 * most:.0f} % of unchanged pull requests undecided"
            yield _at_most(text, Share.among(situation.ours.undecided), most)


def _cost(found: Found, plans: Sequence[Plan]) -> Iterator[Aim]:
    wide = {plan.name for plan in plans if plan.environment.boards == FOUR_BOARDS}
    seconds = {key: of.ours.seconds for key, of in found.situations.items() if key[0] in wide}
    if seconds:
        longest = max(seconds, key=lambda key: float(seconds[key].max()))
        most = float(seconds[longest].max())
        said = f"{most / 60:.1f} min ({', '.join(longest)})"
        yield Aim("four boards: 15 minutes at most, in every row", said, most <= BUDGET_S)
    for situation in _some(found, TYPICAL, UNCHANGED):
        own = situation.ours.seconds
        error = float(own.std(ddof=1) / np.sqrt(len(own)))
        mean = float(own.mean())
        text = f"{TYPICAL.name}: unchanged pull requests take 10 minutes on average or less"
        yield Aim(text, f"{mean / 60:.2f} ±{error / 60:.2f} min", mean <= MEAN_S)


def _coverage(found: Found, _plans: Sequence[Plan]) -> Iterator[Aim]:
    for name, coverage in found.coverage.items():
        kept = abs(coverage.value - COVERAGE) <= COVERAGE_WITHIN
        yield Aim(f"{name}: 95 % intervals hold the true change in 93.5 to 96.5 %", f"{coverage} %", kept)


def _slow(found: Found, plans: Sequence[Plan]) -> Iterator[Aim]:
    for effect in (ONE_BOARD, ONE_BOARD_30, QUARTER):
        for situation in _some(found, TYPICAL, effect):
            passed = Share.among(situation.ours.passed(effect.metric))
            least = int(situation.ours.candidate_boots.min())
            text = f"{TYPICAL.name}, {effect.name}: at most 2 % pass"
            yield _at_most(text, passed, SLOW_PASSES, f" (after {least} candidate boots or more)")
    for plan in plans:
        for situation in _some(found, plan, ONE_BOARD_FAILS):
            passed = Share.among(situation.ours.passed(ONE_BOARD_FAILS.metric))
            text = f"{plan.name}, {ONE_BOARD_FAILS.name}: at most 2 % pass"
            yield _at_most(text, passed, SLOW_PASSES)


def _failures(found: Found, plans: Sequence[Plan]) -> Iterator[Aim]:
    for plan in plans:
        for situation in _some(found, plan, ALL_FAIL):
            text = f"{plan.name}: total failure blocked in at least 99 %"
            yield _at_least(text, situation.our_share(), 0.99)


def _dominance(found: Found, rules: Sequence[Rule], equal: Thresholds) -> Iterator[Aim]:
    ours, better = better_rules(found.situations, rules, equal)
    if ours:
        own = f"ours {with_error(ours.false_blocks)} % at worst, {100 * ours.power:.1f} % caught"
        said = f"{', '.join(better) or 'none'}; {own}"
        yield Aim("no rule better on false blocks and power together", said, not better)


def _some(found: Found, plan: Plan, effect: Effect) -> list[Situation]:
    situation = found.situations.get((plan.name, effect.name))
    return [situation] if situation else []
