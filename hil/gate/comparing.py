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

from hil.base.units import convert, find_unit
from hil.gate.boots import BoardBoots, Scale, gather, has_no_place, known, scale_of
from hil.gate.counts import Count, Tallies, look_at_counts, total
from hil.gate.decision import FEWEST_BOOTS, Design, Effect, Seen
from hil.gate.exact import compare_exact, growth
from hil.gate.fit import FittedBoot, finite, look_at
from hil.gate.pairs import ComparedPair
from hil.gate.series import Found, Numbers, of_test, without_test
from hil.metrics.boot_value import BootValue

NOTHING_MEASURED = "nothing was measured"
IDENTICAL = "both images are the same bytes"
ADVICE_ALPHA = 0.025  # of each side of the interval that advice is printed with
# tolerance and min_effect where failures decide for a latency: shares of all messages, as p95 is a number up
# to 5 %; and of boots, for what has no failures by itself, such as a stream that stood still
TIMEOUTS, UNSEEN = (0.02, 0.005), (0.25, 0.1)
_FEWEST_BOOTS_OF_ONE_TIMEOUT = 4
_FAR_TOLERANCES, _FAR_DEVIATIONS = 2.0, 4.0
_FEWEST_FAR, _MOST_FAR = 2, 0.6  # boots, and the share of boots: more is no now and then
_MOST_NAMED = 3
_WAY_OUT = "once this is on main, the next change has a base"


def compare(pair: ComparedPair, alpha: float) -> Found:
    """Return what a comparison comes to; ``alpha`` is its own share, where it has a rule to block by.

    Whether it blocks is asked look by look: boots after a decision do not take it back. Raises ConfigError
    as pairs_of() and boot_value() do.
    """
    if pair.comparison.identical:
        return without_test(pair, "pass", IDENTICAL, final=True)
    if pair.rule is None or pair.comparison.role == "reference":
        return _advise(pair)
    found = without_test(pair, "undecided", NOTHING_MEASURED)
    for number, look in enumerate(pair.comparison.looks, start=1):
        is_whole = _is_reached(pair, look)
        if not is_whole and number > 1:
            return found
        then = pair.as_of(look)
        if not then.blocking:
            return _advise(pair)
        found = _judge(_Look(then, number, alpha, is_whole))
        if found.final or not is_whole:
            return found
    return found._replace(final=True)


def _advise(pair: ComparedPair) -> Found:
    """Return what all boots say of a comparison that is advice; its outcome is decided among all advice."""
    return _judge(_Look(pair, 0, None, is_whole=True))._replace(final=True)


@dataclass(frozen=True)
class _Look:
    """A pair as it was at a look, numbered from 1; 0 of advice, which has no ``alpha`` of its own.

    Where not ``is_whole`` the boards have not finished it, and it decides nothing.
    """

    pair: ComparedPair
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

    @property
    def rule(self) -> tuple[float, float]:
        """Tolerance and smallest effect, as the rule has them; of advice the policy's tolerance, and none."""
        if self.alpha is not None and self.pair.rule is not None:
            return self.pair.rule.tolerance, self.pair.rule.min_effect
        return (self.pair.thresholds.policy.tolerance if self.scale.relative else 0.0), 0.0

    def design(self, tolerance: float, min_effect: float, unit: float = 1.0, floor: float = 0.0) -> Design:
        """Return how it is decided; ``unit`` is that of the test. Advice has one look, at all boots."""
        policy, scale = self.pair.thresholds.policy, self.scale
        looks = self.pair.comparison.looks
        if self.alpha is None:
            boots = [max(board.boots[role] for board in self.usable) for role in (0, 1)]
            looks = ((boots[0], boots[1]),)
        return Design(
            looks,
            ADVICE_ALPHA if self.alpha is None else self.alpha,
            policy.beta,
            scale.worse(tolerance) / unit,
            scale.worse(min_effect) / unit,
            scale.worse(policy.blind_below * tolerance) / unit,
            floor,
        )

    def found(
        self, seen: Seen, design: Design, centre: Sequence[float], reason: str, unit: float = 1.0
    ) -> Found:
        """Write down what a test saw."""
        numbers = Numbers(seen, design, (centre[0], centre[1]), unit, self.number, self.is_whole)
        return of_test(self.pair, self.boards, numbers, reason, is_ruled=self.alpha is not None)


def _is_reached(pair: ComparedPair, look: tuple[int, int]) -> bool:
    """Return whether a board has all boots of a look: the boot loop waits for all, so others have failed."""
    most = [max(map(len, side.values()), default=0) for side in pair.boots.sides]
    return all(boots >= wanted for boots, wanted in zip(most, look, strict=True))


def _judge(look: _Look) -> Found:
    """Judge what is there at a look."""
    pair = look.pair
    candidate, other = pair.boots.sides
    if not any(candidate.values()):
        return without_test(pair, "undecided", NOTHING_MEASURED)
    if not any(other.values()):
        first = pair.comparison.looks[0][0]
        if look.number and all(len(records) < first for records in candidate.values()):
            # the run ended before the other's turn, which tells nothing of what that can measure
            why = f"no boot of the {pair.comparison.role} was measured"
            return without_test(pair, "undecided", why)
        why = f"for no boot of the {pair.comparison.role} has it; {_WAY_OUT}"
        return without_test(pair, "no-baseline", why, final=True)
    if why := _other_ruler(pair):
        return without_test(pair, "undecided", why, final=True)
    look = replace(look, boards=tuple(gather(pair)))
    if not look.usable:
        final = all(board.lasting for board in look.boards)
        return without_test(pair, "undecided", _why_none(look.boards), look.boards, final=final)
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
        return without_test(look.pair, "undecided", why, look.boards, final=True)
    values = _of_values(look)
    if not _is_of_timeouts(look.usable):
        return values
    return _worse_of(_of_timeouts(look), values, look.usable)


def _other_ruler(pair: ComparedPair) -> str:
    """Report that agent or bench sources differ between the two firmwares; "" if they are the same."""
    rulers = [
        {record.ruler_hash for records in side.values() for record in records} for side in pair.boots.sides
    ]
    if rulers[0] == rulers[1]:
        return ""
    return f"the {pair.comparison.role} was measured by another ruler (sources of agent and bench)"


def _why_none(boards: Sequence[BoardBoots]) -> str:
    """Explain why no board counts, each reason once."""
    reasons: dict[str, list[str]] = {}
    for board in boards:
        reasons.setdefault(board.note, []).append(board.board)
    texts = [f"{reason} ({', '.join(names)})" for reason, names in reasons.items()]
    return "; ".join(texts[:_MOST_NAMED])


def _of_values(look: _Look) -> Found:
    present = known(look.usable)
    quantum = max((value.quantum for value in present), default=0.0)
    floor = look.scale.variance_floor(quantum, [value.value for value in present])
    design = look.design(*look.rule, floor=floor)
    boards = [board.on(look.scale) for board in look.usable]
    seen = look_at(boards, design, look.number or 1)
    reason = ""
    if min(sum(board.boots[side] for board in look.usable) for side in (0, 1)) < FEWEST_BOOTS:
        reason = f"fewer than {FEWEST_BOOTS} boots of each"
    elif math.isfinite(seen.difference):
        reason = _now_and_then(boards, design.tolerance)
    return look.found(seen, design, [_centre(boards, is_candidate=own) for own in (True, False)], reason)


def _now_and_then(boards: Sequence[Sequence[FittedBoot]], tolerance: float) -> str:
    """Report outlying boots that only the candidate has; "" if there are none.

    Far is beyond the mean of the other's boots on the board by _FAR_TOLERANCES, and by _FAR_DEVIATIONS of how
    the other's boots differ. Too few of them block at a strict alpha, and a person should look at them.
    """
    off: tuple[list[float], list[float]] = ([], [])
    freedom = 0
    for board in boards:
        base = finite(boot.value for boot in board if not boot.is_candidate)
        if base:
            freedom += len(base) - 1
            for boot in board:
                off[not boot.is_candidate].append(boot.value - fmean(base))
    if freedom < 1:
        return ""
    squares = math.fsum(value * value for value in finite(off[1]))
    limit = max(_FAR_TOLERANCES * tolerance, _FAR_DEVIATIONS * math.sqrt(squares / freedom))
    slow = [sum(value > limit for value in side) for side in off]
    shares = [count / max(len(side), 1) for count, side in zip(slow, off, strict=True)]
    if slow[0] < _FEWEST_FAR or shares[0] > _MOST_FAR or shares[1] > shares[0] / 3:
        return ""
    return (
        f"{slow[0]} of its {len(off[0])} boots lie far off, and {slow[1]} of the other's {len(off[1])}: "
        "see those"
    )


def _centre(boards: Sequence[Sequence[FittedBoot]], *, is_candidate: bool) -> float:
    """Return where the boots lie, each board counting alike; NaN without one that was seen."""
    seen = [finite(boot.value for boot in board if boot.is_candidate is is_candidate) for board in boards]
    means = [fmean(side) for side in seen if side]
    return fmean(means) if means else math.nan


def _of_counts(look: _Look) -> Found:
    """Judge a share of failures. Where more is better, what is counted is the rest."""
    pair = look.pair
    share = convert(1.0, find_unit("ratio"), pair.metric.unit)
    of = _hits if pair.metric.direction == "lower" else _misses
    design = look.design(*look.rule, unit=share)
    seen, sides = _count(look, design, of)
    reason = ""
    if not any(side.hits for side in sides):
        trials = " + ".join(f"{side.trials:,.0f}" for side in sides)
        reason = f"nothing failed in {trials} trials, which are too few to exclude the tolerance"
    if all(side.hits == side.trials for side in sides):
        reason = "everything failed on both sides, so nothing tells how failures hang together"
    shares = [side.share if pair.metric.direction == "lower" else 1.0 - side.share for side in sides]
    return look.found(seen, design, [look.scale.sign * one * share for one in shares], reason, share)


def _of_exact(look: _Look) -> Found:
    """Judge figures without noise: a boot of each says it all, so the first look decides.

    As advice, the policy's relative tolerance stands for the rule's.
    """
    look = replace(look, is_whole=True)
    pair, policy = look.pair, look.pair.thresholds.policy
    first = pair.comparison.looks[0] if look.alpha is not None else None
    sides = [_exact_values(board.on(look.scale), first) for board in look.usable]
    grown = [growth(side) for side in sides]
    base = max((abs(value) for side in sides for value in finite(side[1])), default=0.0)
    rule = pair.rule if look.alpha is not None else None
    unit = base if rule is None or rule.relative else 1.0
    tolerance, least = (rule or policy).tolerance * unit, (rule or policy).min_effect * unit
    state = compare_exact(grown, tolerance, least)
    worst = max((one for one in grown if one), key=lambda one: one.least, default=None)
    if worst is None:
        seen, values = Seen(), (math.nan, math.nan)
    else:
        seen, values = (
            Seen(state, worst.least, 0.0, boundary=0.0, smallest_effect=max(tolerance, 0.0)),
            worst.values,
        )
    effects = tuple(Effect(one.least, 0.0) if one else Effect() for one in grown)
    design = Design(pair.comparison.looks, math.nan, math.nan, tolerance, least)
    found = look.found(
        replace(seen, effects=effects),
        design,
        values,
        "the boots of one firmware differ by more than is tolerated",
    )
    return found._replace(final=True)


def _exact_values(
    boots: Sequence[FittedBoot], first: tuple[int, int] | None
) -> tuple[list[float], list[float]]:
    """Return the figures of either role, no more than the first look has."""
    candidate, other = ([boot.value for boot in boots if boot.is_candidate is own] for own in (True, False))
    return (candidate[: first[0]], other[: first[1]]) if first else (candidate, other)


def _is_of_timeouts(boards: Sequence[BoardBoots]) -> bool:
    """Return whether too many boots fell among timeouts for their values alone to be compared.

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
    tolerance, min_effect = TIMEOUTS if of is _hits else UNSEEN
    blind_below = look.pair.thresholds.policy.blind_below * tolerance
    design = replace(
        look.design(0.0, 0.0), tolerance=tolerance, min_effect=min_effect, blind_below=blind_below
    )
    seen, (mine, others) = _count(look, design, of)
    lost = [sum(board.timed_out[side] for board in look.usable) for side in (0, 1)]
    words = (
        f"the value fell among timeouts in {lost[0]} boots of the candidate and {lost[1]} of the "
        f"{look.pair.comparison.role}, so the failures decide: {mine.share:.2%} after {others.share:.2%}"
    )
    if seen.state == "undecided" or not look.is_whole:
        return without_test(look.pair, "undecided", f"{words}, which is not sure yet", look.boards)
    return without_test(look.pair, seen.state, words, look.boards, final=True)


def _worse_of(failures: Found, values: Found, boards: Sequence[BoardBoots]) -> Found:
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
    series = replace(values.series, reason=reason)
    if 2 * sum(board.timed_out[0] for board in boards) > sum(board.boots[0] for board in boards):
        # most of its values are only known to be that large
        series = replace(series, candidate_value=None, change=None, low=None, high=None)
    return values._replace(series=series, final=final)


def _count(look: _Look, design: Design, of: Callable[[BootValue], Count]) -> tuple[Seen, list[Count]]:
    """Return what the counts of the boots say, and all of candidate and other together."""
    tallies = [Tallies(*(list(map(of, side)) for side in board.sides)) for board in look.usable]
    sides = [total(one for board in tallies for one in board[role]) for role in (0, 1)]
    return look_at_counts(tallies, design, look.number or 1), sides


def _hits(value: BootValue) -> Count:
    return Count(value.hits, value.samples)


def _misses(value: BootValue) -> Count:
    return Count(value.samples - value.hits, value.samples)


def _unseen(value: BootValue) -> Count:
    """Count boots."""
    return Count(float(math.isinf(value.value)), 1.0)
