# SPDX-License-Identifier: Apache-2.0
"""What a verdict holds of a comparison: a test's numbers in changes of the figure, and the reasons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from hil.gate.boots import BoardBoots, Scale, scale_of
from hil.gate.decision import ENOUGH_TO_PASS, Design, Seen, excluded_share
from hil.gate.pairs import ComparedPair
from hil.gate.words.comparisons import size
from hil.gate.words.limits import rounded, whole
from hil.model import BoardEffect, ComparedSeries, Outcome

DIFFER = "its boots differ too much to decide"
_HARDLY = 30.0  # so many errors better is what the exact test says where there is nothing to test


class Found(NamedTuple):
    """A comparison as far as it is known, its sentence still to be written.

    Where ``final``, more boots change nothing. ``p`` is two-sided, of all boots: what advice is judged by.
    """

    series: ComparedSeries
    final: bool
    p: float = math.nan


class Numbers(NamedTuple):
    """What a test saw at a look, and by which design; ``centre`` is where candidate and other lie.

    ``unit`` is what 1 of the test's comes to on the metric's scale.
    """

    seen: Seen
    design: Design
    centre: tuple[float, float]
    unit: float
    look: int
    is_whole: bool


def of_test(
    pair: ComparedPair, boards: Sequence[BoardBoots], numbers: Numbers, reason: str, *, is_ruled: bool
) -> Found:
    """Write down what was seen; ``reason`` is why nothing is decided, where nothing is."""
    seen, design, unit, scale = numbers.seen, numbers.design, numbers.unit, scale_of(pair.metric)
    shown = whole if pair.metric.exact else rounded  # of an exact figure each byte counts
    low, high = scale.changes(unit * seen.low, unit * seen.high)
    series = replace(
        _series(pair, boards),
        candidate_value=shown(scale.value(numbers.centre[0])),
        other_value=shown(scale.value(numbers.centre[1])),
        change=shown(scale.change(unit * seen.difference)),
        low=shown(low),
        high=shown(high),
        z=rounded(seen.z) if not seen.z < -_HARDLY else None,
        boundary=rounded(seen.boundary),
        boot_deviation=rounded(seen.boot_deviation),
        tolerance=rounded(scale.size(unit * design.tolerance)) if is_ruled else None,
        min_effect=rounded(scale.size(unit * design.min_effect)) if is_ruled else None,
        smallest_effect=rounded(scale.size(unit * seen.smallest_effect)) if is_ruled else None,
        effects=_effects(boards, seen, scale, unit),
    )
    outcome: Outcome = seen.state if numbers.is_whole else "undecided"
    if not is_ruled and (math.isfinite(seen.p) or seen.error == 0.0):
        outcome = "pass"  # unless it is a discovery among all advice
    if outcome == "undecided":
        return Found(
            replace(series, reason=_why_undecided(pair, series, boards, numbers, reason)), False, seen.p
        )
    tested = series.blocking and outcome in ("pass", "improved")
    bound = rounded(scale.change(unit * seen.pass_bound)) if tested else None
    remarks = [_slow_boots(series)] if tested and not pair.metric.exact else []
    decided = replace(series, outcome=outcome, pass_bound=bound, reason=_remarks(pair, boards, remarks))
    return Found(decided, True, seen.p)


def without_test(
    pair: ComparedPair,
    outcome: Outcome,
    reason: str,
    boards: Sequence[BoardBoots] = (),
    *,
    final: bool = False,
) -> Found:
    """Return what is known without the numbers of a test."""
    if outcome not in ("undecided", "no-baseline"):
        reason = "; ".join(filter(None, (reason, pair.why_advice)))
    return Found(replace(_series(pair, boards), outcome=outcome, reason=reason), final)


def _slow_boots(series: ComparedSeries) -> str:
    """Describe the share of slow boots that a pass of few boots excludes."""
    boots = series.candidate_boots
    if boots >= ENOUGH_TO_PASS:
        return ""
    return f"its {boots} boots exclude (95 %) only that {excluded_share(boots):.0%} of them or more are slow"


def _why_undecided(
    pair: ComparedPair, series: ComparedSeries, boards: Sequence[BoardBoots], numbers: Numbers, reason: str
) -> str:
    """Explain why nothing is decided, and how many boots would decide it; an outlying board comes first."""
    seen = numbers.seen
    usable = [board.board for board in boards if board.counts]
    if seen.apart >= 0:
        change = next(one.change for one in series.effects if one.board == usable[seen.apart]) or 0.0
        sign = "+" if change >= 0 else "−"
        reason = f"{usable[seen.apart]} alone is worse than tolerated ({sign}{size(series, abs(change))})"
    look = numbers.design.looks[max(numbers.look, 1) - 1]
    if seen.apart < 0 and 1.0 < seen.wanted < math.inf and numbers.look:
        return f"{reason or DIFFER} ({_wanted(look, seen.wanted, pair.comparison.boot_s)})"
    return reason or DIFFER


def _wanted(look: tuple[int, int], times: float, boot_s: float | None) -> str:
    """Return "some 14 + 14 boots a board would, 3 min more": what would decide."""
    wanted = [math.ceil(times * boots) for boots in look]
    more_s = (sum(wanted) - sum(look)) * (boot_s or 0.0)
    minutes = f", {math.ceil(more_s / 60.0):,} min more" if more_s else ""
    return f"some {wanted[0]:,} + {wanted[1]:,} boots a board would{minutes}"


def _effects(boards: Sequence[BoardBoots], seen: Seen, scale: Scale, unit: float) -> tuple[BoardEffect, ...]:
    """Return what each board says, those that do not count with the reason."""
    own = iter(seen.effects)
    found = []
    for board in boards:
        effect = BoardEffect(board.board, *board.boots, note=board.note, left_out=board.left_out)
        at = next(own) if board.counts and seen.effects else None
        if at is not None and math.isfinite(at.difference):
            reach = seen.boundary * at.error
            low, high = scale.changes(unit * (at.difference - reach), unit * (at.difference + reach))
            change = rounded(scale.change(unit * at.difference))
            effect = replace(effect, change=change, low=rounded(low), high=rounded(high))
        found.append(effect)
    return tuple(found)


def _remarks(pair: ComparedPair, boards: Sequence[BoardBoots], first: Sequence[str]) -> str:
    """Return what is to be known of a decision: what changed with the image, why it does not block."""
    followed = dict.fromkeys(words for board in boards for words in board.check.followed)
    return "; ".join(filter(None, (*first, *followed, pair.why_advice)))


def _series(pair: ComparedPair, boards: Sequence[BoardBoots]) -> ComparedSeries:
    """Return what a verdict holds of a pair, without what a test finds."""
    comparison, metric = pair.comparison, pair.metric
    used = [board for board in boards if board.counts]
    return ComparedSeries(
        series_id=pair.series_id,
        rack=comparison.rack,
        target=comparison.target,
        kind=pair.kind,
        boards=comparison.boards,
        role=comparison.role,
        case_id=pair.case.case_id,
        case_label=pair.thresholds.case_label(pair.case.parameters),
        metric=metric.name,
        unit=metric.unit.name,
        direction=metric.direction,
        outcome="undecided",
        blocking=pair.blocking,
        sentence="",
        relative=scale_of(metric).relative,
        looks=len(comparison.looks),
        candidate_boots=_boots(pair, boards, 0),
        other_boots=_boots(pair, boards, 1),
        checks=tuple(
            words for words in used[0].check.passed if all(words in board.check.passed for board in used)
        )
        if used
        else (),
        effects=tuple(
            BoardEffect(one.board, *one.boots, note=one.note, left_out=one.left_out) for one in boards
        ),
        clock=pair.clock,
    )


def _boots(pair: ComparedPair, boards: Sequence[BoardBoots], role: int) -> int:
    """Return how many boots of a role say something; where nothing was asked of them, how many there are."""
    if boards:
        return sum(board.boots[role] for board in boards)
    return sum(map(len, pair.boots.sides[role].values()))
