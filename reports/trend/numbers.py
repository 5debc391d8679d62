"""Numbers as trend.json holds them: five significant digits, and null for what is none."""

from __future__ import annotations

import math
from collections.abc import Iterable

SIGNIFICANT_DIGITS = 5
_LARGEST_WHOLE = 2**53  # above it a float tells whole numbers apart no more

Number = int | float | None


def tidy(value: float | None) -> Number:
    """Return a value rounded, whole numbers as such; None of NaN and of what is infinite."""
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < _LARGEST_WHOLE else rounded


def tidy_all(values: Iterable[float | None]) -> list[Number]:
    return [tidy(value) for value in values]
