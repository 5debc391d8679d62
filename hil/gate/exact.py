# SPDX-License-Identifier: Apache-2.0
"""Exact figures (sizes, low-water marks, instructions): facts, so they are compared without a test.

They take no share of alpha. Where the boots of one firmware differ, its figure is a range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from hil.gate.decision import State

_Sides = tuple[Sequence[float], Sequence[float]]  # a board's values, of candidate and other


class Range(NamedTuple):
    """By how much a board's figure grew, at least and at most; ``values`` are the two that are nearest."""

    least: float
    most: float
    values: tuple[float, float]


def growth(sides: _Sides) -> Range | None:
    """Return the growth of a board's value; None if a role has no boot, or a value is infinite."""
    mine, others = ([value for value in side if not math.isnan(value)] for side in sides)
    if not (mine and others) or not all(map(math.isfinite, (*mine, *others))):
        return None
    nearest = (min(mine), max(others))
    return Range(nearest[0] - nearest[1], max(mine) - min(others), nearest)


def compare_exact(boards: Sequence[Range | None], tolerance: float, min_effect: float) -> State:
    """Decide by what the figures of all boards did, in the metric's unit.

    Regressed: on any board the ranges lie further apart than tolerated. Pass: on every board even the largest
    growth is tolerated. Improved: on every board it fell by more than ``min_effect``.
    """
    known = [board for board in boards if board is not None]
    if any(board.least > tolerance for board in known):
        return "regressed"
    if not known or len(known) < len(boards) or any(board.most > tolerance for board in known):
        return "undecided"
    return "improved" if all(-board.most > min_effect for board in known) else "pass"
