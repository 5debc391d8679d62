# SPDX-License-Identifier: Apache-2.0
"""Comparisons of values: latencies, throughput, what lies round zero. By sequential.decide()."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

import numpy as np
import scipy.special

from hil.gate.compare.boot_values import BoardBoots, Values, known, positions
from hil.gate.compare.finding import Finding, Numbers
from hil.gate.compare.scale import Scale, scale_of
from hil.gate.compare.sequential import FEWEST_BOOTS, Decisions, Design, decide
from hil.gate.compare.states import DIFFER, of_boards, outcome_of
from hil.gate.compare.units import Unit

FAR_TOLERANCES, FAR_DEVIATIONS = 2.0, 4.0
_FEWEST_FAR, _MOST_FAR = 2, 0.6  # boots, and the share of boots: more is no now and then
ADVICE_ALPHA = 0.025  # of each side of the interval that advice is printed with


def compare_values(unit: Unit, boards: Sequence[BoardBoots], alpha: float | None) -> Finding:
    """Judge the boards that count; ``boards`` are all, for the record."""
    scale = scale_of(unit.metric)
    usable = [board for board in boards if board.counts]
    candidate, other = positions(usable, scale)
    design = _design(unit, usable, alpha, scale)
    with np.errstate(all="ignore"):
        decisions = decide(candidate, other, design)
    numbers = _numbers(unit, usable, decisions, design, scale)
    outcome, final, reason = outcome_of(int(decisions.state[0]))
    if alpha is None and numbers.p is not None:
        outcome, reason = "pass", ""  # unless it is a discovery among all advice
    if outcome == "inconclusive" and _too_few(usable):
        reason = f"fewer than {FEWEST_BOOTS} boots of each"
    outcome, reason = of_boards(outcome, reason, numbers.odd, usable)
    if reason == DIFFER and (slow := _now_and_then(candidate[0], other[0], design.tolerance)):
        reason = slow
    return Finding(unit, outcome, final, reason, boards=tuple(boards), numbers=numbers)


def _now_and_then(candidate: np.ndarray, other: np.ndarray, tolerance: float) -> str:
    """Say that some boots of the candidate alone lie far off, "" where they do not; (B, K) each.

    Far is beyond the mean of the other's boots on the board by FAR_TOLERANCES, and by FAR_DEVIATIONS of how
    the other's boots differ. Too few of them block at a strict alpha, and a person should look at them.
    """
    seen = np.isfinite(other).any(axis=1)
    base = np.where(np.isfinite(other), other, np.nan)[seen]
    freedom = int(np.isfinite(base).sum() - len(base))
    if freedom < 1:
        return ""
    centre = np.nanmean(base, axis=1, keepdims=True)
    off = [side[seen] - centre for side in (candidate, other)]
    deviation = math.sqrt(float(np.nansum((base - centre) ** 2)) / freedom)
    limit = max(FAR_TOLERANCES * tolerance, FAR_DEVIATIONS * deviation)
    slow, boots = [int((side > limit).sum()) for side in off], [int((~np.isnan(side)).sum()) for side in off]
    shares = [count / max(of, 1) for count, of in zip(slow, boots, strict=True)]
    if slow[0] < _FEWEST_FAR or shares[0] > _MOST_FAR or shares[1] > shares[0] / 3:
        return ""
    return (
        f"{slow[0]} of its {boots[0]} boots lie far off, and {slow[1]} of the other's {boots[1]}: see those"
    )


def _design(unit: Unit, boards: Sequence[BoardBoots], alpha: float | None, scale: Scale) -> Design:
    policy, rule = unit.thresholds.policy, unit.rule
    values = known(boards)
    quantum = max((value.quantum for value in values), default=0.0)
    common = {
        "beta": policy.beta,
        "variance_floor": scale.variance_floor(quantum, [value.value for value in values]),
    }
    if alpha is None or rule is None:
        boots = tuple(max(len(side) for side in sides) for sides in _sides(boards))
        tolerance = scale.worse(policy.tolerance) if scale.relative else 0.0
        return Design(((boots[0], boots[1]),), ADVICE_ALPHA, tolerance=tolerance, min_effect=0.0, **common)
    return Design(
        unit.comparison.looks,
        alpha,
        tolerance=scale.worse(rule.tolerance),
        min_effect=scale.worse(rule.min_effect),
        **common,
    )


def _sides(boards: Sequence[BoardBoots]) -> tuple[list[Values], list[Values]]:
    return [board.candidate for board in boards], [board.other for board in boards]


def _numbers(
    unit: Unit,
    boards: Sequence[BoardBoots],
    found: Decisions,
    design: Design,
    scale: Scale,
) -> Numbers:
    difference, z, boundary = (float(array[0]) for array in (found.difference, found.z, found.boundary))
    names = [board.board for board in boards]
    is_advice = unit.rule is None
    return Numbers(
        scale=scale,
        difference=difference,
        low=float(found.low[0]),
        high=float(found.high[0]),
        z=z,
        boundary=boundary,
        boot_deviation=float(found.boot_deviation[0]),
        smallest_effect=math.nan if is_advice else float(found.smallest_effect[0]),
        tolerance=None if is_advice else design.tolerance,
        min_effect=None if is_advice else design.min_effect,
        candidate=_centre([board.candidate for board in boards], scale),
        other=_centre([board.other for board in boards], scale),
        effects={
            name: (float(effect), float(error))
            for name, effect, error in zip(names, found.effects[0], found.errors[0], strict=True)
        },
        odd=tuple(name for name, mark in zip(names, found.odd[0], strict=True) if mark),
        p=_p_value(z, boundary, design.alpha),
        pass_bound=float(found.pass_bound[0]),
    )


def _p_value(z: float, boundary: float, alpha: float) -> float | None:
    """Return the two-sided p value of z, whose distribution exceeds ``boundary`` with probability ``alpha``.

    A boundary beyond the normal one is Student's, of as many degrees of freedom as make it so.
    """
    if not (math.isfinite(z) and math.isfinite(boundary)):
        return None
    normal = float(-scipy.special.ndtri(alpha))
    if boundary <= normal * (1.0 + 1e-6):
        return float(2.0 * scipy.special.ndtr(-abs(z)))
    freedom = float(scipy.special.stdtridf(1.0 - alpha, boundary))
    if not freedom > 0.0:
        return None
    return float(2.0 * scipy.special.stdtr(max(freedom, 1.0), -abs(z)))


def _centre(sides: Sequence[Values], scale: Scale) -> float:
    """Return where the boots lie, each board counting alike; NaN without one that was seen."""
    means = []
    for side in sides:
        here = [scale.position(value.value, value.quantum) for value in side if value is not None]
        seen = [position for position in here if math.isfinite(position)]
        means += [fmean(seen)] if seen else []
    return fmean(means) if means else math.nan


def _too_few(boards: Sequence[BoardBoots]) -> bool:
    return min(sum(board.boots[side] for board in boards) for side in (0, 1)) < FEWEST_BOOTS
