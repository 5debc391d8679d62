# SPDX-License-Identifier: Apache-2.0
"""One comparison, from its records to what the verdict holds of it: look by look, frozen at a decision.

Each look sees what each board had then, and no more: so the boot loop, which asks after each look, and
whoever judges the whole journal later find the same, whatever was measured for other metrics afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple

from hil.base.units import convert, find_unit
from hil.gate.compare.boots import BoardBoots, Scale, gather, has_no_place, known, scale_of
from hil.gate.compare.counts import Count, Tallies, look_at_counts, look_at_exact, total
from hil.gate.compare.pairs import Pair, as_of
from hil.gate.compare.values import FEWEST_BOOTS, Boots, Design, Seen, look_at
from hil.gate.words.comparisons import size
from hil.gate.words.limits import rounded, whole
from hil.metrics.boot_value import BootValue
from hil.model import BoardEffect, ComparedSeries, Outcome

NOTHING_MEASURED = "nothing was measured"
IDENTICAL = "both images are the same bytes"
CONTRADICT = "its boards contradict each other"
DIFFER = "its boots differ too much to decide"
ADVICE_ALPHA = 0.025  # of each side of the interval that advice is printed with
# tolerance and min_effect where failures decide for a latency: shares of all messages, as p95 is a number up
# to 5 %; and of boots, for what has no failures by itself, such as a stream that stood still
TIMEOUTS, UNSEEN = (0.02, 0.005), (0.25, 0.1)
_FEWEST_BOOTS_OF_ONE_TIMEOUT = 4
_FAR_TOLERANCES, _FAR_DEVIATIONS = 2.0, 4.0
_FEWEST_FAR, _MOST_FAR = 2, 0.6  # boots, and the share of boots: more is no now and then
_HARDLY = 30.0  # so many errors better is what the exact test says where there is nothing to test
_MOST_NAMED = 3
_WAY_OUT = "once this is on main, the next change has a base"

_CountOf = Callable[[BootValue], Count]


class Found(NamedTuple):
    """A comparison as far as it is known, its sentence still to be written.

    Where ``final``, more boots change nothing. ``p`` is two-sided, of all boots: what advice is judged by.
    """

    series: ComparedSeries
    final: bool
    p: float = math.nan


def compare(pair: Pair, alpha: float) -> Found:
    """Return what a comparison with a rule comes to; ``alpha`` is its own share.

    Whether it blocks is asked look by look: boots after a decision do not take it back. Raises ConfigError
    as pairs_of() and boot_value() do.
    """
    if pair.comparison.identical:
        return _without_test(pair, "pass", IDENTICAL, final=True)
    found = _without_test(pair, "undecided", NOTHING_MEASURED)
    for number, look in enumerate(pair.comparison.looks, start=1):
        is_whole = _is_reached(pair, look)
        if not is_whole and number > 1:
            return found
        then = as_of(pair, look)
        if not then.blocking:
            return advise(pair)
        found = _judge(_Look(then, number, alpha, is_whole))
        if found.final or not is_whole:
            return found
    return found._replace(final=True)


def advise(pair: Pair) -> Found:
    """Return what all boots say of a comparison that is advice; its outcome is decided among all advice."""
    if pair.comparison.identical:
        return _without_test(pair, "pass", IDENTICAL, final=True)
    return _judge(_Look(pair, 0, None, is_whole=True))._replace(final=True)


@dataclass(frozen=True)
class _Look:
    """A pair as it was at a look, numbered from 1; 0 of advice, which has no ``alpha`` of its own.

    Where not ``is_whole`` the boards have not finished it, and it decides nothing.
    """

    pair: Pair
    number: int
    alpha: float | None
    is_whole: bool
    boards: Sequence[BoardBoots] = ()

    @property
    def usable(self) -> list[BoardBoots]:
        return [board for board in self.boards if board.counts]

    @property
    def scale(self) -> Scale:
        return scale_of(self.pair.metric)

    def design(self, tolerance: float, min_effect: float, floor: float = 0.0) -> Design:
        """Return how it is decided; advice by one look at all boots."""
        comparison, beta = self.pair.comparison, self.pair.thresholds.policy.beta
        if self.alpha is None:
            boots = [max(len(board.sides[role]) for board in self.usable) for role in (0, 1)]
            return Design(((boots[0], boots[1]),), ADVICE_ALPHA, beta, tolerance, min_effect, floor)
        return Design(comparison.looks, self.alpha, beta, tolerance, min_effect, floor)


def _is_reached(pair: Pair, look: tuple[int, int]) -> bool:
    """Say whether a board has all boots of a look: the boot loop waits for all, so others have failed."""
    most = [max(map(len, side.values()), default=0) for side in (pair.candidate, pair.other)]
    return all(boots >= wanted for boots, wanted in zip(most, look, strict=True))


def _judge(look: _Look) -> Found:
    """Judge what is there at a look."""
    pair = look.pair
    if not any(pair.candidate.values()):
        return _without_test(pair, "undecided", NOTHING_MEASURED)
    if not any(pair.other.values()):
        first = pair.comparison.looks[0][0]
        if look.number and all(len(records) < first for records in pair.candidate.values()):
            # the run ended before the other's turn, which tells nothing of what that can measure
            why = f"no boot of the {pair.comparison.role} was measured"
            return _without_test(pair, "undecided", why)
        why = f"for no boot of the {pair.comparison.role} has it; {_WAY_OUT}"
        return _without_test(pair, "no-baseline", why, final=True)
    if why := _other_ruler(pair):
        return _without_test(pair, "undecided", why, final=True)
    look = replace(look, boards=tuple(gather(pair)))
    if not look.usable:
        final = all(board.lasting for board in look.boards)
        return _without_test(pair, "undecided", _why_none(look.boards), look.boards, final=final)
    found = _tested(look)
    if found.final and found.series.outcome == "undecided":
        return found  # no look at further boots changes it
    early = 0 < look.number < len(pair.comparison.looks)
    early = early and found.final and found.series.outcome in ("pass", "improved", "regressed")
    early = early and found.series.change is not None
    series = replace(found.series, look=look.number, early=early)
    return found._replace(series=series)


def _tested(look: _Look) -> Found:
    """Judge by the test that is for such a metric."""
    metric, scale = look.pair.metric, look.scale
    if metric.scale == "count":
        return _of_counts(look)
    if metric.exact:
        return _of_exact(look)
    if has_no_place(look.usable, scale):
        value = min(known(look.usable), key=lambda one: one.value).value
        why = (
            f"a boot's {value:g} {metric.unit.name} has no logarithm; "
            f"give the metric 'scale: identity' ({metric.source})"
        )
        return _without_test(look.pair, "undecided", why, look.boards, final=True)
    values = _of_values(look)
    if not _is_of_timeouts(look.usable):
        return values
    return _worse_of(_of_timeouts(look), values)


def _other_ruler(pair: Pair) -> str:
    """Say that the other was measured by other sources of agent and bench; "" where it was not."""
    rulers = [
        {record.ruler_hash for records in side.values() for record in records}
        for side in (pair.candidate, pair.other)
    ]
    if rulers[0] == rulers[1]:
        return ""
    return f"the {pair.comparison.role} was measured by another ruler (sources of agent and bench)"


def _why_none(boards: Sequence[BoardBoots]) -> str:
    """Say why no board counts, each reason once."""
    reasons: dict[str, list[str]] = {}
    for board in boards:
        reasons.setdefault(board.note, []).append(board.board)
    texts = [f"{reason} ({', '.join(names)})" for reason, names in reasons.items()]
    return "; ".join(texts[:_MOST_NAMED])


def _of_values(look: _Look) -> Found:
    pair, scale, policy = look.pair, look.scale, look.pair.thresholds.policy
    present = known(look.usable)
    quantum = max((value.quantum for value in present), default=0.0)
    floor = scale.variance_floor(quantum, [value.value for value in present])
    if look.alpha is not None and pair.rule is not None:
        design = look.design(scale.worse(pair.rule.tolerance), scale.worse(pair.rule.min_effect), floor)
    else:
        design = look.design(scale.worse(policy.tolerance) if scale.relative else 0.0, 0.0, floor)
    boots = [board.on(scale) for board in look.usable]
    seen = look_at(boots, design, look.number or 1)
    reason = ""
    if min(sum(board.boots[side] for board in look.usable) for side in (0, 1)) < FEWEST_BOOTS:
        reason = f"fewer than {FEWEST_BOOTS} boots of each"
    elif math.isfinite(seen.difference):
        reason = _now_and_then(boots, design.tolerance)
    centre = [_centre([one[role] for one in boots]) for role in (0, 1)]
    return _found(look, design, seen, centre, reason)


def _now_and_then(boards: Sequence[Boots], tolerance: float) -> str:
    """Say that some boots of the candidate alone lie far off, "" where they do not.

    Far is beyond the mean of the other's boots on the board by _FAR_TOLERANCES, and by _FAR_DEVIATIONS of how
    the other's boots differ. Too few of them block at a strict alpha, and a person should look at them.
    """
    off: tuple[list[float], list[float]] = ([], [])
    freedom = 0
    for board in boards:
        base = [value for value in board.other if math.isfinite(value)]
        if base:
            freedom += len(base) - 1
            for role in (0, 1):
                off[role].extend(value - fmean(base) for value in board[role] if not math.isnan(value))
    if freedom < 1:
        return ""
    squares = math.fsum(value * value for value in off[1] if math.isfinite(value))
    limit = max(_FAR_TOLERANCES * tolerance, _FAR_DEVIATIONS * math.sqrt(squares / freedom))
    slow = [sum(value > limit for value in side) for side in off]
    shares = [count / max(len(side), 1) for count, side in zip(slow, off, strict=True)]
    if slow[0] < _FEWEST_FAR or shares[0] > _MOST_FAR or shares[1] > shares[0] / 3:
        return ""
    return (
        f"{slow[0]} of its {len(off[0])} boots lie far off, and {slow[1]} of the other's {len(off[1])}: "
        "see those"
    )


def _centre(sides: Sequence[Sequence[float]]) -> float:
    """Return where the boots lie, each board counting alike; NaN without one that was seen."""
    seen = [[value for value in side if math.isfinite(value)] for side in sides]
    means = [fmean(side) for side in seen if side]
    return fmean(means) if means else math.nan


def _of_counts(look: _Look) -> Found:
    """Judge a share of failures. Where more is better, what is counted is the rest."""
    pair = look.pair
    share = convert(1.0, find_unit("ratio"), pair.metric.unit)
    of = _hits if pair.metric.direction == "lower" else _misses
    rule = None if look.alpha is None else pair.rule
    design = look.design(rule.tolerance / share if rule else 0.0, rule.min_effect / share if rule else 0.0)
    tallies = [_tallies(board, of) for board in look.usable]
    seen = look_at_counts(tallies, design, look.number or 1)
    sides = [total(one for board in tallies for one in board[role]) for role in (0, 1)]
    reason = ""
    if not any(side.hits for side in sides):
        trials = " + ".join(f"{side.trials:,.0f}" for side in sides)
        reason = f"nothing failed in {trials} trials, which are too few to exclude the tolerance"
    if all(side.hits == side.trials for side in sides):
        reason = "everything failed on both sides, so nothing tells how failures hang together"
    shares = [side.share if pair.metric.direction == "lower" else 1.0 - side.share for side in sides]
    return _found(look, design, seen, [look.scale.sign * one * share for one in shares], reason, share)


def _of_exact(look: _Look) -> Found:
    """Judge figures without noise. As advice, the policy's relative tolerance stands for the rule's."""
    look = replace(look, is_whole=True)  # a boot of each says it all
    pair, policy = look.pair, look.pair.thresholds.policy
    first = pair.comparison.looks[0] if look.alpha is not None else (None, None)
    boards = [
        Boots(*(side[:boots] for side, boots in zip(board.on(look.scale), first, strict=True)))
        for board in look.usable
    ]
    size_of = max(
        (abs(value) for board in boards for value in board.other if not math.isnan(value)), default=0.0
    )
    if look.alpha is not None and pair.rule is not None:
        unit = size_of if pair.rule.relative else 1.0
        design = look.design(unit * pair.rule.tolerance, unit * pair.rule.min_effect)
    else:
        design = look.design(policy.tolerance * size_of, policy.min_effect * size_of)
    seen, is_exact = look_at_exact(boards, design)
    centre = [_worst([board[role] for board in boards]) for role in (0, 1)]
    reason = "" if is_exact else "the boots of one firmware differ, so it is no exact figure"
    return _found(look, design, seen, centre, reason)._replace(
        final=seen.state != "undecided" or not is_exact
    )


def _worst(sides: Sequence[Sequence[float]]) -> float:
    return max((value for side in sides for value in side if math.isfinite(value)), default=math.nan)


def _is_of_timeouts(boards: Sequence[BoardBoots]) -> bool:
    """Say whether too many boots fell among timeouts for their values alone to be compared.

    One of four boots or more is a bad boot, which counts as far beyond the others.
    """
    for side in (0, 1):
        lost = sum(board.timed_out[side] for board in boards)
        boots = sum(board.boots[side] for board in boards)
        if lost > 1 or (lost and boots < _FEWEST_BOOTS_OF_ONE_TIMEOUT):
            return True
    return False


def _of_timeouts(look: _Look) -> Found:
    """Let the share of failures decide for values that are only known to be at least the timeout."""
    of = _hits if any(value.hits for value in known(look.usable)) else _unseen
    design = look.design(*(TIMEOUTS if of is _hits else UNSEEN))
    tallies = [_tallies(board, of) for board in look.usable]
    seen = look_at_counts(tallies, design, look.number or 1)
    shares = [total(one for board in tallies for one in board[role]).share for role in (0, 1)]
    lost = [sum(board.timed_out[side] for board in look.usable) for side in (0, 1)]
    words = (
        f"the value fell among timeouts in {lost[0]} boots of the candidate and {lost[1]} of the "
        f"{look.pair.comparison.role}, so the failures decide: {shares[0]:.2%} after {shares[1]:.2%}"
    )
    if seen.state == "undecided" or not look.is_whole:
        return _without_test(look.pair, "undecided", f"{words}, which is not sure yet", look.boards)
    return _without_test(look.pair, seen.state, words, look.boards, final=True)


def _worse_of(failures: Found, values: Found) -> Found:
    """Return the worse of what the failures say, and the values with timeouts as the slowest of them.

    So neither passes for the other: fewer failures excuse no slower messages, nor the other way round. Where
    most of the other's boots fell among timeouts, no value can be slower, and the failures alone decide.
    """
    said = failures.series.outcome
    if values.series.change is None or said == "regressed":
        return failures
    if said == "undecided" and values.series.outcome != "regressed":
        return failures
    final = values.final and (values.series.outcome == "regressed" or failures.final)
    reason = "; ".join(filter(None, (failures.series.reason, values.series.reason)))
    return values._replace(series=replace(values.series, reason=reason), final=final)


def _tallies(board: BoardBoots, of: _CountOf) -> Tallies:
    return Tallies(*([of(value) for value in side if value is not None] for side in board.sides))


def _hits(value: BootValue) -> Count:
    return Count(value.hits, value.samples)


def _misses(value: BootValue) -> Count:
    return Count(value.samples - value.hits, value.samples)


def _unseen(value: BootValue) -> Count:
    """Count boots."""
    return Count(float(math.isinf(value.value)), 1.0)


def _found(
    look: _Look, design: Design, seen: Seen, centre: Sequence[float], reason: str, unit: float = 1.0
) -> Found:
    """Write down what was seen, in changes of the figure; ``unit`` is what 1 of the test's comes to.

    ``centre`` is where candidate and other lie, ``reason`` why nothing is decided where nothing is.
    """
    pair, scale = look.pair, look.scale
    names = [board.board for board in look.usable]
    odd = tuple(name for name, is_odd in zip(names, seen.odd, strict=True) if is_odd)
    shown = whole if pair.metric.exact else rounded  # of an exact figure each byte counts
    low, high = scale.changes(unit * seen.low, unit * seen.high)
    ruled = look.alpha is not None and pair.rule is not None
    series = replace(
        _series(pair, look.boards),
        candidate_value=shown(scale.value(centre[0])),
        other_value=shown(scale.value(centre[1])),
        change=shown(scale.change(unit * seen.difference)),
        low=shown(low),
        high=shown(high),
        z=rounded(seen.z) if not seen.z < -_HARDLY else None,
        boundary=rounded(seen.boundary),
        boot_deviation=rounded(seen.boot_deviation),
        tolerance=rounded(scale.size(unit * design.tolerance)) if ruled else None,
        min_effect=rounded(scale.size(unit * design.min_effect)) if ruled else None,
        smallest_effect=rounded(scale.size(unit * seen.smallest_effect)) if ruled else None,
        odd_boards=odd,
        effects=_effects(look, seen, unit),
    )
    outcome: Outcome = seen.state if look.is_whole else "undecided"
    if look.alpha is None and math.isfinite(seen.p):
        outcome = "pass"  # unless it is a discovery among all advice
    if outcome != "undecided":
        series = replace(series, outcome=outcome, reason=_remarks(look, ""))
        return Found(replace(series, pass_bound=_pass_bound(series, seen, scale, unit)), True, seen.p)
    if seen.apart >= 0 and not odd:
        series = replace(series, odd_boards=(names[seen.apart],))
    return Found(replace(series, reason=_why_undecided(series, reason)), False, seen.p)


def _pass_bound(series: ComparedSeries, seen: Seen, scale: Scale, unit: float) -> float | None:
    """Return how much the figure may have changed for the worse at most, by the test that it passed.

    None where there was no test: of exact figures, and of advice.
    """
    tested = series.blocking and series.outcome in ("pass", "improved")
    return rounded(scale.change(unit * seen.pass_bound)) if tested else None


def _why_undecided(series: ComparedSeries, reason: str) -> str:
    """Say why nothing is decided: boards that stand apart go before boots that do."""
    if not series.odd_boards:
        return reason or DIFFER
    texts = []
    for effect in series.effects:
        if effect.change is not None and effect.board in series.odd_boards:
            sign = "+" if effect.change >= 0 else "−"
            texts.append(f"{effect.board} {sign}{size(series, abs(effect.change))}")
    return f"{CONTRADICT} ({', '.join(texts)})"


def _effects(look: _Look, seen: Seen, unit: float) -> tuple[BoardEffect, ...]:
    """Return what each board says, those that do not count with the reason."""
    own = {board.board: place for place, board in enumerate(look.usable)}
    found = []
    for board in look.boards:
        candidate, other = board.boots
        effect = BoardEffect(board.board, candidate, other, note=board.note)
        place = own.get(board.board)
        if place is not None and math.isfinite(seen.effects[place].difference):
            at = seen.effects[place]
            reach = seen.boundary * at.error
            low, high = look.scale.changes(unit * (at.difference - reach), unit * (at.difference + reach))
            effect = replace(
                effect,
                change=rounded(look.scale.change(unit * at.difference)),
                low=rounded(low),
                high=rounded(high),
                note="contradicts the others" if seen.odd[place] else board.note,
            )
        found.append(effect)
    return tuple(found)


def _remarks(look: _Look, first: str) -> str:
    """Return what is to be known of a decision: what changed with the image, why it does not block."""
    followed = dict.fromkeys(words for board in look.boards for words in board.check.followed)
    return "; ".join(filter(None, (first, *followed, look.pair.why_advice)))


def _without_test(
    pair: Pair, outcome: Outcome, reason: str, boards: Sequence[BoardBoots] = (), *, final: bool = False
) -> Found:
    """Return what is known without the numbers of a test."""
    if outcome not in ("undecided", "no-baseline"):
        reason = "; ".join(filter(None, (reason, pair.why_advice)))
    return Found(replace(_series(pair, boards), outcome=outcome, reason=reason), final)


def _series(pair: Pair, boards: Sequence[BoardBoots]) -> ComparedSeries:
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
        case_label=pair.case_label,
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
        effects=tuple(BoardEffect(one.board, *one.boots, note=one.note) for one in boards),
        clock=pair.clock,
    )


def _boots(pair: Pair, boards: Sequence[BoardBoots], role: int) -> int:
    """Return how many boots of a role say something; where nothing was asked of them, how many there are."""
    if boards:
        return sum(board.boots[role] for board in boards)
    return sum(map(len, (pair.candidate, pair.other)[role].values()))
