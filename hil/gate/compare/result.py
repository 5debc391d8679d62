# SPDX-License-Identifier: Apache-2.0
"""From a finding to what the verdict holds of it: changes of the figure, rounded, and the sentence."""

from __future__ import annotations

import math
from dataclasses import replace

from hil.gate.compare.boot_values import BoardBoots
from hil.gate.compare.finding import Finding, Numbers
from hil.gate.compare.scale import scale_of
from hil.gate.words.comparisons import contradiction, describe
from hil.gate.words.rounding import rounded, whole
from hil.model import BoardEffect, ComparedSeries, Outcome


def compared_series(found: Finding) -> ComparedSeries:
    """Return the comparison as it stands in verdicts.json."""
    unit, comparison = found.unit, found.unit.comparison
    scale = scale_of(unit.metric)
    used = [board for board in found.boards if board.counts]
    item = ComparedSeries(
        series_id=unit.series_id,
        rack=comparison.rack,
        target=comparison.target,
        kind=unit.kind,
        boards=comparison.boards,
        role=comparison.role,
        case_id=unit.case.case_id,
        case_label=unit.case_label,
        metric=unit.metric.name,
        unit=unit.metric.unit.name,
        direction=unit.metric.direction,
        outcome=found.outcome,
        blocking=unit.blocking,
        sentence="",
        relative=scale.relative,
        look=found.look,
        looks=len(comparison.looks),
        early=_is_early(found),
        candidate_boots=sum(board.boots[0] for board in found.boards),
        other_boots=sum(board.boots[1] for board in found.boards),
        checks=_checks(used),
        reason=_reason(found),
        effects=tuple(_effect(board, found.numbers) for board in found.boards),
        clock=unit.clock,
    )
    if found.numbers is not None:
        item = _with_numbers(item, found.numbers, exact=unit.metric.exact)
        item = replace(item, pass_bound=_pass_bound(found, found.numbers))
    if found.outcome == "inconclusive" and item.odd_boards and (texts := contradiction(item.effects, item)):
        item = replace(item, reason=f"{item.reason} ({texts})")
    return replace(item, sentence=describe(item, comparison.run_id))


def with_outcome(item: ComparedSeries, outcome: Outcome, run_id: str) -> ComparedSeries:
    """Return advice with the outcome that it has among all advice."""
    changed = replace(item, outcome=outcome)
    return replace(changed, sentence=describe(changed, run_id))


def _with_numbers(item: ComparedSeries, numbers: Numbers, *, exact: bool) -> ComparedSeries:
    scale = numbers.scale
    shown = whole if exact else rounded  # of an exact figure each byte counts
    low, high = scale.changes(numbers.low, numbers.high)
    return replace(
        item,
        candidate_value=shown(scale.value(numbers.candidate)),
        other_value=shown(scale.value(numbers.other)),
        change=shown(scale.change(numbers.difference)),
        low=shown(low),
        high=shown(high),
        z=rounded(numbers.z),
        boundary=rounded(numbers.boundary),
        boot_deviation=rounded(numbers.boot_deviation),
        tolerance=_size(numbers, numbers.tolerance),
        min_effect=_size(numbers, numbers.min_effect),
        smallest_effect=_size(numbers, numbers.smallest_effect),
        odd_boards=numbers.odd,
    )


def _pass_bound(found: Finding, numbers: Numbers) -> float | None:
    """Return how much the figure may have changed for the worse at most, by the test that it passed.

    None where there was no test: of exact figures, and where nothing has failed.
    """
    passed = found.unit.blocking and found.outcome in ("pass", "improved")
    bound, tolerance = numbers.pass_bound, numbers.tolerance
    if not passed or not math.isfinite(bound) or tolerance is None or bound > tolerance:
        return None
    return rounded(numbers.scale.change(bound))


def _size(numbers: Numbers, difference: float | None) -> float | None:
    return None if difference is None else rounded(numbers.scale.size(difference))


def _effect(board: BoardBoots, numbers: Numbers | None) -> BoardEffect:
    candidate, other = board.boots
    effect = BoardEffect(board.board, candidate, other, note=board.note)
    if numbers is None or board.board not in numbers.effects:
        return effect
    difference, error = numbers.effects[board.board]
    reach = numbers.boundary * error
    low, high = numbers.scale.changes(difference - reach, difference + reach)
    is_odd = board.board in numbers.odd
    return replace(
        effect,
        change=rounded(numbers.scale.change(difference)),
        low=rounded(low),
        high=rounded(high),
        note="contradicts the others" if is_odd else board.note,
    )


def _is_early(found: Finding) -> bool:
    looks = len(found.unit.comparison.looks)
    return found.is_decided and 0 < found.look < looks and found.numbers is not None


def _checks(boards: list[BoardBoots]) -> tuple[str, ...]:
    """Return what came out well on every board that counts."""
    if not boards:
        return ()
    return tuple(
        words for words in boards[0].check.passed if all(words in board.check.passed for board in boards)
    )


def _reason(found: Finding) -> str:
    """Return why there is no decision, else what is to be known of it, and why it does not block."""
    if found.outcome in ("inconclusive", "no-baseline"):
        return found.reason
    followed = dict.fromkeys(words for board in found.boards for words in board.check.followed)
    parts = [found.reason, found.note, *followed, found.unit.why_advice]
    return "; ".join(part for part in parts if part)
