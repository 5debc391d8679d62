# SPDX-License-Identifier: Apache-2.0
"""Comparisons of shares of failures, of exact figures, and of values that fell among timeouts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import scipy.special

from hil.base.units import convert, find_unit
from hil.gate.compare.boot_values import BoardBoots, Values, known, positions
from hil.gate.compare.counts import Counts, decide_counts
from hil.gate.compare.exact import decide_exact
from hil.gate.compare.finding import Finding, Numbers
from hil.gate.compare.scale import Scale, scale_of
from hil.gate.compare.sequential import Decisions, Design
from hil.gate.compare.states import DIFFER, of_boards, outcome_of
from hil.gate.compare.units import Unit
from hil.metrics.boot_value import BootValue

ADVICE_ALPHA = 0.025
# where failures decide for a latency: shares of all messages, as p95 is a number up to 5 %
TIMEOUTS_TOLERANCE = 0.02
TIMEOUTS_MIN_EFFECT = 0.005
_FEWEST_BOOTS_OF_ONE_TIMEOUT = 4
_NO_Z = 30.0  # what the exact test says where there is nothing to test

_Of = Callable[[BootValue], tuple[float, float]]


def is_of_timeouts(boards: Sequence[BoardBoots]) -> bool:
    """Say whether too many boots fell among timeouts for their values to be compared.

    One of four boots or more is a bad boot, which counts as far beyond the others.
    """
    for side in (0, 1):
        lost = sum(board.timed_out[side] for board in boards)
        boots = sum(board.boots[side] for board in boards)
        if lost > 1 or (lost and boots < _FEWEST_BOOTS_OF_ONE_TIMEOUT):
            return True
    return False


def compare_counts(unit: Unit, boards: Sequence[BoardBoots], alpha: float | None) -> Finding:
    """Judge a share of failures. Where more is better, what is counted is the rest."""
    usable = [board for board in boards if board.counts]
    share = convert(1.0, find_unit("ratio"), unit.metric.unit)
    rule = None if alpha is None else unit.rule
    design = _design(
        unit,
        usable,
        alpha,
        tolerance=rule.tolerance / share if rule else 0.0,
        min_effect=rule.min_effect / share if rule else 0.0,
    )
    of = _hits if unit.metric.direction == "lower" else _misses
    sides = tuple(_counts([_side(board, role) for board in usable], of) for role in (0, 1))
    decisions = decide_counts(sides[0], sides[1], design)
    numbers = _numbers(unit, usable, decisions, design, share, sides)
    if alpha is None:
        mirrored = decide_counts(sides[1], sides[0], design)
        numbers = replace(numbers, p=_p_value(float(decisions.z[0]), float(mirrored.z[0])))
    found = _finding(unit, boards, usable, decisions, numbers)
    if found.reason != DIFFER or any(np.nansum(side.hits) for side in sides):
        return found
    trials = " + ".join(f"{np.nansum(side.trials):,.0f}" for side in sides)
    return replace(
        found, reason=f"nothing failed in {trials} trials, which are too few to exclude the tolerance"
    )


def compare_exact(unit: Unit, boards: Sequence[BoardBoots], alpha: float | None) -> Finding:
    """Judge figures without noise. As advice, the policy's relative tolerance stands for the rule's."""
    usable = [board for board in boards if board.counts]
    candidate, other = positions(usable, scale_of(unit.metric))
    policy, rule = unit.thresholds.policy, None if alpha is None else unit.rule
    size = float(np.nanmax(np.abs(other)))
    design = _design(
        unit,
        usable,
        alpha,
        tolerance=rule.tolerance if rule else policy.tolerance * size,
        min_effect=rule.min_effect if rule else policy.min_effect * size,
    )
    decisions = decide_exact(candidate, other, design)
    numbers = _numbers(unit, usable, decisions, design, 1.0, None)
    found = _finding(unit, boards, usable, decisions, numbers)
    if found.outcome != "inconclusive":
        return found
    return replace(found, reason="the boots of one firmware differ, so it is no exact figure")


def compare_timeouts(unit: Unit, boards: Sequence[BoardBoots], alpha: float | None) -> Finding:
    """Let the share of failures decide for values that are only known to be at least the timeout."""
    usable = [board for board in boards if board.counts]
    of = _hits if any(value.hits for value in known(usable)) else _unseen
    tolerance, min_effect = (TIMEOUTS_TOLERANCE, TIMEOUTS_MIN_EFFECT) if of is _hits else (0.25, 0.1)
    design = _design(unit, usable, alpha, tolerance=tolerance, min_effect=min_effect)
    sides = tuple(_counts([_side(board, role) for board in usable], of) for role in (0, 1))
    decisions = decide_counts(sides[0], sides[1], design)
    outcome, final, reason = outcome_of(int(decisions.state[0]))
    lost = [sum(board.timed_out[side] for board in usable) for side in (0, 1)]
    shares = [_share(side) for side in sides]
    words = (
        f"the value fell among timeouts in {lost[0]} boots of the candidate and {lost[1]} of the "
        f"{unit.comparison.role}, so the failures decide: {shares[0]:.2%} after {shares[1]:.2%}"
    )
    if outcome == "inconclusive":
        reason = f"{words}, which is {reason.replace('its boots differ', 'not sure, for they differ')}"
        return Finding(unit, outcome, final, reason, boards=tuple(boards))
    return Finding(unit, outcome, final, boards=tuple(boards), note=words)


def _design(
    unit: Unit, boards: Sequence[BoardBoots], alpha: float | None, *, tolerance: float, min_effect: float
) -> Design:
    looks = unit.comparison.looks
    if alpha is None:
        candidate, other = (max(len(_side(board, role)) for board in boards) for role in (0, 1))
        looks = ((candidate, other),)
    return Design(looks, alpha or ADVICE_ALPHA, unit.thresholds.policy.beta, tolerance, min_effect)


def _finding(
    unit: Unit,
    boards: Sequence[BoardBoots],
    usable: Sequence[BoardBoots],
    decisions: Decisions,
    numbers: Numbers,
) -> Finding:
    outcome, final, reason = outcome_of(int(decisions.state[0]))
    if numbers.p is not None:
        outcome, reason = "pass", ""  # unless it is a discovery among all advice
    outcome, reason = of_boards(outcome, reason, numbers.odd, usable)
    return Finding(unit, outcome, final, reason, boards=tuple(boards), numbers=numbers)


def _numbers(
    unit: Unit,
    boards: Sequence[BoardBoots],
    found: Decisions,
    design: Design,
    factor: float,
    sides: tuple[Counts, ...] | None,
) -> Numbers:
    """Return the numbers in the metric's unit; ``factor`` is what 1 of the decision's comes to."""
    scale, z = scale_of(unit.metric), float(found.z[0])
    names = [board.board for board in boards]
    candidate, other = (_centre(boards, role, scale) for role in (0, 1)) if sides is None else (
        scale.sign * _value(side, unit) * factor for side in sides
    )  # fmt: skip
    return Numbers(
        scale=scale,
        difference=factor * float(found.difference[0]),
        low=factor * float(found.low[0]),
        high=factor * float(found.high[0]),
        z=z if abs(z) < _NO_Z or z > 0 else math.nan,
        boundary=float(found.boundary[0]),
        boot_deviation=math.nan,
        smallest_effect=factor * float(found.smallest_effect[0]),
        tolerance=None if unit.rule is None else factor * design.tolerance,
        min_effect=None if unit.rule is None else factor * design.min_effect,
        candidate=candidate,
        other=other,
        effects={
            name: (factor * float(effect), factor * float(error))
            for name, effect, error in zip(names, found.effects[0], found.errors[0], strict=True)
        },
        odd=tuple(name for name, mark in zip(names, found.odd[0], strict=True) if mark),
        pass_bound=factor * float(found.pass_bound[0]),
    )


def _value(side: Counts, unit: Unit) -> float:
    share = _share(side)
    return share if unit.metric.direction == "lower" else 1.0 - share


def _centre(boards: Sequence[BoardBoots], role: int, scale: Scale) -> float:
    """Return the worst figure of any board."""
    found = [
        scale.position(value.value, 0.0)
        for board in boards
        for value in _side(board, role)
        if value is not None and math.isfinite(value.value)
    ]
    return max(found, default=math.nan)


def _side(board: BoardBoots, role: int) -> Values:
    return board.other if role else board.candidate


def _hits(value: BootValue) -> tuple[float, float]:
    return value.hits, value.samples


def _misses(value: BootValue) -> tuple[float, float]:
    return value.samples - value.hits, value.samples


def _unseen(value: BootValue) -> tuple[float, float]:
    """Count boots: of what has no failures by itself, such as a stream that stood still."""
    return float(math.isinf(value.value)), 1.0


def _counts(sides: Sequence[Values], of: _Of) -> Counts:
    shape = (1, len(sides), max((len(values) for values in sides), default=0))
    hits, trials = np.full(shape, np.nan), np.full(shape, np.nan)
    for row, values in enumerate(sides):
        for column, value in enumerate(values):
            if value is not None:
                hits[0, row, column], trials[0, row, column] = of(value)
    return Counts(hits, trials)


def _share(side: Counts) -> float:
    trials = float(np.nansum(side.trials))
    return float(np.nansum(side.hits)) / trials if trials else math.nan


def _p_value(worse: float, better: float) -> float | None:
    """Return the two-sided p value of two exact one-sided tests, given as normal quantiles."""
    if not (math.isfinite(worse) and math.isfinite(better)):
        return None
    return min(1.0, 2.0 * float(scipy.special.ndtr(-max(worse, better))))
