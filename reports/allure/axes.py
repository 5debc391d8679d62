"""Axes of charts: from values to pixels, and ticks at round numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_LOG_FROM_RATIO = 4.0  # below it a logarithmic axis looks like a linear one, with odder ticks
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_LOG_STEPS = ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 5, 7), tuple(range(1, 10)))
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Axis:
    """Maps ``low`` … ``high`` to ``start_px`` … ``end_px``; a y axis starts at the bottom."""

    low: float
    high: float
    start_px: float
    end_px: float
    log: bool = False

    def px(self, value: float) -> float:
        low, high, at = (self._scaled(number) for number in (self.low, self.high, value))
        return self.start_px + (at - low) / (high - low) * (self.end_px - self.start_px)

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def holds(self, value: float) -> bool:
        margin = abs(self.high - self.low) * _ROUNDING
        return self.low - margin <= value <= self.high + margin

    def ticks(self, count: int) -> list[float]:
        """Return about ``count`` round numbers within the axis."""
        if self.log:
            return log_ticks(self.low, self.high, count)
        return linear_ticks(self.low, self.high, count)


def wants_log(values: Sequence[float]) -> bool:
    """Say whether values spread so far that a logarithmic axis shows them better."""
    return bool(values) and min(values) > 0 and max(values) / min(values) >= _LOG_FROM_RATIO


def padded(values: Sequence[float], *, log: bool, share: float = 0.04) -> tuple[float, float]:
    """Return the ends of an axis that holds ``values``, with some space beyond the outermost."""
    low, high = min(values), max(values)
    if log:
        stretch = (high / low) ** share if high > low else 1.2
        return low / stretch, high * stretch
    space = (high - low) * share or abs(high) * share or 1.0
    return (low - space if low < 0 or low - space > 0 else 0.0), high + space


def from_zero(values: Sequence[float], *, share: float = 0.06) -> tuple[float, float]:
    """Return the ends of an axis that holds zero too, for lengths that are compared by eye."""
    low, high = min(0.0, *values), max(0.0, *values)
    space = (high - low) * share or 1.0
    return (low - space if low < 0 else 0.0), high + space


def linear_ticks(low: float, high: float, count: int) -> list[float]:
    step = _round_step((high - low) / max(count, 1))
    first, last = math.ceil(low / step - _ROUNDING), math.floor(high / step + _ROUNDING)
    return [round(index * step, 12) for index in range(first, last + 1)]


def log_ticks(low: float, high: float, count: int) -> list[float]:
    """Return 1, 10, 100; or 1, 2, 5, 10 and so on, the most that are at most ``count``; at least two.

    Over many decades some are left out; where not even two digits lie within, the ticks are a linear axis'.
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    choices = [
        [
            digit * 10.0**decade
            for decade in decades
            for digit in digits
            if low <= digit * 10.0**decade <= high
        ]
        for digits in _LOG_STEPS
    ]
    fitting = [ticks for ticks in choices if 2 <= len(ticks) <= max(count, 2)]
    if fitting:
        return fitting[-1]
    decades_only = choices[0]
    if len(decades_only) > count:
        return decades_only[:: math.ceil(len(decades_only) / count)]
    return linear_ticks(low, high, count)


def _round_step(step: float) -> float:
    power: float = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in _STEPS if step <= factor * power * (1 + _ROUNDING))


def tick_text(value: float) -> str:
    """Write a tick: as few digits as it has."""
    return f"{value:,.6f}".rstrip("0").rstrip(".") if abs(value) >= 1e-6 or value == 0 else f"{value:g}"


def pushed_apart(positions: Sequence[float], distance: float, low: float, high: float) -> list[float]:
    """Move labels as little as needed that they lie ``distance`` apart, in their order, within the ends."""
    order = sorted(range(len(positions)), key=lambda index: positions[index])
    placed: list[float] = []
    for index in order:
        wanted = max(positions[index], low)
        placed.append(max(wanted, placed[-1] + distance) if placed else wanted)
    ceiling = high
    for rank in reversed(range(len(placed))):
        placed[rank] = min(placed[rank], ceiling)
        ceiling = placed[rank] - distance
    found = [0.0] * len(positions)
    for index, position in zip(order, placed, strict=True):
        found[index] = position
    return found
