# SPDX-License-Identifier: Apache-2.0
"""Rounding of what a verdict holds."""

from __future__ import annotations

import math

_SIGNIFICANT_DIGITS = 6


def rounded(value: float | None) -> float | None:
    """Return six significant digits, so that the last bits of a library do not change a verdict's bytes.

    None of what is not finite.
    """
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{_SIGNIFICANT_DIGITS}g}")


def whole(value: float | None) -> float | None:
    """Return every digit of an exact figure, None of what is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)
