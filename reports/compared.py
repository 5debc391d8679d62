# SPDX-License-Identifier: Apache-2.0
"""Comparisons with the base, or with the reference, as a person reads them: order, signs, quantities."""

from __future__ import annotations

from dataclasses import replace

from hil.base.units import find_unit, format_value, format_values
from hil.gate.words.comparisons import share
from hil.model import BoardEffect, ComparedSeries, Verdict

_WIDEST = 2.0  # of a relative interval: 200 %
ORDER = ("regressed", "undecided", "no-baseline", "improved", "pass")


def ranked(verdict: Verdict) -> list[ComparedSeries]:
    """Return the comparisons: those that block first, and of them the worst."""
    return sorted(
        verdict.compared, key=lambda item: (not item.blocking, ORDER.index(item.outcome), item.series_id)
    )


def is_blocked(item: ComparedSeries) -> bool:
    return item.blocking and item.outcome == "regressed"


def change(item: ComparedSeries) -> str:
    """Return "+12.3 %", or "+0.4 ms" where the scale is not relative; "–" where there is none."""
    return "–" if item.change is None else _signed(item, item.change)


def interval(item: ComparedSeries) -> str:
    """Return "+8.1 … +16.7 %", "too wide" where it says nothing; "–" where there is none."""
    if item.low is None or item.high is None:
        return "–"
    if item.low == item.high:
        return "exact"
    if item.relative:
        wide = item.high - item.low > _WIDEST  # what so few boots leave is no figure to read
        return "too wide" if wide else f"{item.low * 100:+.1f} … {item.high * 100:+.1f} %"
    low, high = format_values([item.low, item.high], find_unit(item.unit))
    number, _, symbol = low.partition(" ")
    return f"{_plus(item.low)}{number} … {_plus(item.high)}{high} {symbol}".strip()


def _plus(value: float) -> str:
    return "+" if value > 0 else ""


def bound(item: ComparedSeries) -> str:
    """Return "≤ +8.2 %" of a pass ("≥ −8.2 %" where more is better), else the interval; "exact (+2.1 %)"."""
    if item.pass_bound is None:
        of_base = share(item)
        return interval(item) + (f" ({of_base})" if of_base else "")
    side = "≤" if item.direction == "lower" else "≥"
    return f"{side} {_signed(item, item.pass_bound)}"


def size(item: ComparedSeries, value: float | None) -> str:
    """Return a tolerance or an effect without a sign: "10 %", "64 B"; "–" where there is none."""
    if value is None:
        return "–"
    return f"{value * 100:.3g} %" if item.relative else format_value(value, find_unit(item.unit))


def is_notable(item: ComparedSeries) -> bool:
    """Whether a comparison did not simply pass."""
    return item.outcome != "pass" or any(effect.left_out for effect in item.effects)


def effects(item: ComparedSeries) -> tuple[str, ...]:
    """Return what each board shows, a line each."""
    return tuple(_effect(item, effect) for effect in item.effects)


def _effect(item: ComparedSeries, effect: BoardEffect) -> str:
    own = replace(item, change=effect.change, low=effect.low, high=effect.high)
    counted = f"{effect.candidate_boots} + {effect.other_boots} boots"
    left_out = f"left out: {effect.left_out}" if effect.left_out else ""
    said = filter(None, (counted, effect.note, left_out))
    return f"{effect.board}: {change(own)} [{interval(own)}], {', '.join(said)}"


def _signed(item: ComparedSeries, value: float) -> str:
    if item.relative:
        return f"{value * 100:+.1f} %"
    text = format_value(value, find_unit(item.unit))
    return text if value < 0 else f"+{text}"
