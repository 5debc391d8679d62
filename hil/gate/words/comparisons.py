# SPDX-License-Identifier: Apache-2.0
"""The sentence that a person reads of a comparison, from its fields alone."""

from __future__ import annotations

import math
from collections.abc import Iterator

from hil.base.units import find_unit, format_difference, format_value, format_values
from hil.gate.words import limits as sentences
from hil.model import ComparedSeries, bench_of

_WIDEST = 10.0  # tolerances: an interval beyond it is not worth printing
NO_BOUNDARY = 100.0  # of few boots, and of an early look: no change that firmware makes is as clear
_TENFOLD = 10.0  # and more has no use for further digits


def place(item: ComparedSeries) -> str:
    """Return "publish latency p50 of publish/transport=tls on virtual-esp32"."""
    figure = sentences.figure_in_words(item.metric, bench_of(item.case_id), item.case_label)
    return f"{figure} on {item.target}"


def change_words(item: ComparedSeries, *, interval: bool = True) -> str:
    """Return "grew by 12.1 % [+8.9, +15.4]"; "fell by …" where the figure became smaller."""
    if item.change is None:
        return "fell among timeouts more often"  # the only one that is decided without a change
    bounds = _interval(item) if interval else ""
    if item.change == 0:
        return f"did not change{bounds}"
    verb = "grew" if item.change > 0 else "fell"
    of_base = f" ({share(item)})" if share(item) else ""
    return f"{verb} by {size(item, abs(item.change))}{of_base}{bounds}"


def told(item: ComparedSeries) -> str:
    """Return "publish latency p50 of … on virtual-esp32 grew by 12.1 % [+8.9, +15.4] against the base"."""
    if item.change is None and item.outcome != "regressed":
        return f"{place(item)}: {item.reason or item.outcome}"
    return f"{place(item)} {exactly(item) or change_words(item)} against the {item.role}"


def is_exact(item: ComparedSeries) -> bool:
    """Return whether the values are exact: the same in each boot of an image, without an interval."""
    counted = not item.relative and find_unit(item.unit).dimension != "ratio"
    return counted and item.low is not None and item.low == item.high


def share(item: ComparedSeries) -> str:
    """Return "+3.1 %": an exact change beside the base; "" for any other."""
    if not is_exact(item) or not item.change or not item.other_value:
        return ""
    percent = item.change / item.other_value * 100
    # of less than 1 % two digits, whatever their place
    decimals = 1 - math.floor(math.log10(abs(percent))) if 0 < abs(percent) < 1 else int(abs(percent) < 100)
    return f"{percent:+,.{decimals}f} %"


def exactly(item: ComparedSeries) -> str:
    """Return "+3.1 % (12,408 → 12,790 instructions)": an exact change; "" for any other."""
    of_base = share(item)
    if not of_base or item.candidate_value is None or item.other_value is None:
        return ""
    unit = find_unit(item.unit)
    now, was = format_values([item.candidate_value, item.other_value], unit)
    number, _, symbol = now.partition(" ")
    return f"{of_base} ({f'{was} → {number} {unit.noun if symbol == unit.symbol else symbol}'.strip()})"


def size(item: ComparedSeries, value: float) -> str:
    """Return "12.1 %", or "0.40 ms" where the change is in the metric's unit."""
    if item.relative:
        return f"{value * 100:,.0f} %" if value >= _TENFOLD else f"{value * 100:.3g} %"
    return format_difference(value, find_unit(item.unit))


def describe(item: ComparedSeries, run_id: str) -> str:
    """Return one sentence: what was found, from how much, how far it can be trusted, how to replay it."""
    who = sentences.subject(item.metric, bench_of(item.case_id), item.case_label, item.target, item.kind)
    if item.outcome == "no-baseline":
        return f"{who}: nothing to compare it with, {item.reason}."
    if not item.candidate_boots and item.outcome == "pass":
        return f"{who}: passed with no boot at all, {item.reason}."
    parts = [f"{who}: {_found(item)}", *filter(None, _details(item)), f"replay: hil gate out/{run_id}"]
    return f"{'; '.join(parts)}."


def _found(item: ComparedSeries) -> str:
    if item.outcome == "undecided":
        seen = f" (so far it {change_words(item)})" if item.change is not None else ""
        return f"no verdict, {item.reason}{seen}"
    if item.change is None:
        return f"{item.outcome}, {item.reason}"
    # of a pass its bound is said, which the interval of an early look may be ten times as wide as
    seen = change_words(item, interval=item.pass_bound is None)
    changed = f"{seen} against the {item.role}{_values(item)}"
    if not item.blocking:
        words = {"regressed": "worse, beyond chance", "improved": "better, beyond chance"}
        return f"{changed}, {words.get(item.outcome, 'within chance')}"
    return f"{changed}, {_verdict(item)}"


def _verdict(item: ComparedSeries) -> str:
    tolerance = "" if item.tolerance is None else f" the tolerance of {size(item, item.tolerance)}"
    tolerance += _excluded(item)
    words = {
        "regressed": "a regression",
        "improved": f"an improvement, within{tolerance}",
        "pass": f"within{tolerance}" if passes_by_bound(item) else "no sign of a change",
    }
    if item.outcome == "regressed" and item.min_effect:
        less = f", though less than{tolerance}" if _excludes_tolerance(item) else ""
        return f"a regression (more than {size(item, item.min_effect)}{less})"
    return words[item.outcome]


def _excluded(item: ComparedSeries) -> str:
    """Return " (at most +8.2 %)": what the test of the pass leaves, and excludes beyond."""
    if item.pass_bound is None or not passes_by_bound(item):
        return ""
    side = "at most" if item.direction == "lower" else "at least"
    return f" ({side} {_signed(item, item.pass_bound)})"


def passes_by_bound(item: ComparedSeries) -> bool:
    """Return whether a pass excludes the tolerance; otherwise it only shows no sign of a change."""
    if item.pass_bound is None or item.tolerance is None:
        return True
    return (item.pass_bound if item.direction == "lower" else -item.pass_bound) <= item.tolerance


def _signed(item: ComparedSeries, value: float) -> str:
    if item.relative:
        return f"{value * 100:+.1f} %"
    return f"{'−' if value < 0 else '+'}{size(item, abs(value))}"


def _excludes_tolerance(item: ComparedSeries) -> bool:
    """Return whether the interval of a regression excludes a change as large as the tolerance."""
    worst = item.high if item.direction == "lower" else None if item.low is None else -item.low
    return worst is not None and item.tolerance is not None and worst < item.tolerance


def _values(item: ComparedSeries) -> str:
    """Return " (12.3 ms after 11.0 ms)"."""
    if item.candidate_value is None or item.other_value is None:
        return ""
    unit = find_unit(item.unit)
    return f" ({format_value(item.candidate_value, unit)} after {format_value(item.other_value, unit)})"


def _interval(item: ComparedSeries) -> str:
    """Return " [+8.9, +15.4]"; "" where it says nothing, as that of a pass at an early look may."""
    if item.low is None or item.high is None or (item.low == item.high and not item.relative):
        return ""
    if item.tolerance and item.high - item.low > _WIDEST * item.tolerance:
        return ""
    if item.relative:
        return f" [{item.low * 100:+.1f}, {item.high * 100:+.1f}]"
    low, high = format_values([item.low, item.high], find_unit(item.unit))
    return f" [{low}, {high}]"


def _details(item: ComparedSeries) -> Iterator[str]:
    yield _evidence(item)
    yield _boots(item)
    yield _noise(item)
    yield _left_out(item)
    yield f"same {', '.join(item.checks)} in all boots" if item.checks else ""
    biased = item.early and item.change and item.outcome in ("regressed", "improved")
    yield "decided early, so the change is biased away from zero" if biased else ""
    yield (
        item.reason if item.outcome not in ("undecided", "no-baseline") and item.change is not None else ""
    )


def _evidence(item: ComparedSeries) -> str:
    if item.z is None or item.boundary is None:
        return ""
    at = f" at look {item.look} of {item.looks}" if item.look and item.looks > 1 else ""
    if item.boundary > NO_BOUNDARY:
        return f"z {item.z:.2f}, and this early no z decides{at}"
    return f"z {item.z:.2f} against a boundary of {item.boundary:.2f}{at}"


def _boots(item: ComparedSeries) -> str:
    boards = [effect.board for effect in item.effects if not effect.note] or list(item.boards)
    clock = f", timed by {item.clock}" if item.clock else ""
    where = f" on {len(boards)} board{'' if len(boards) == 1 else 's'}"
    return f"{item.candidate_boots} + {item.other_boots} boots (candidate + {item.role}){where}{clock}"


def _noise(item: ComparedSeries) -> str:
    parts = []
    if item.boot_deviation is not None:
        parts.append(f"boots differ by {size(item, item.boot_deviation)}")
    if item.smallest_effect is not None and not is_exact(item):
        parts.append(f"a change of {size(item, item.smallest_effect)} would have been seen")
    return ", ".join(parts)


def _left_out(item: ComparedSeries) -> str:
    """Name the boards and boots that do not count, each with its reason."""
    boards = [f"{effect.board} left out: {effect.note}" for effect in item.effects if effect.note]
    boots = [f"left out of {effect.board}: {effect.left_out}" for effect in item.effects if effect.left_out]
    return "; ".join([*boards, *boots])
