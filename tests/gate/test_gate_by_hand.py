# SPDX-License-Identifier: Apache-2.0
"""The verdict that docs/explain/verdict-by-hand.md works out by hand is right, and the gate's."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.stats

from hil.gate.decision import Design
from hil.gate.fit import FittedBoot, look_at
from tests.lab import ROOT

ALPHA, BOOTS = 0.005, 8


class ByHand(NamedTuple):
    """The fit of a level and a line a board, and of one effect: by the normal equations of all boots."""

    slopes: Sequence[float]
    effect: float
    squares: float
    freedom: int
    deviation: float
    error: float

    @classmethod
    def of(cls, boards: Sequence[Sequence[tuple[bool, float]]]) -> ByHand:
        rows, values = [], []
        for number, board in enumerate(boards):
            for place, (is_candidate, value) in enumerate(board):
                own = [0.0] * 2 * len(boards)
                own[2 * number : 2 * number + 2] = [1.0, place - (BOOTS - 1) / 2]
                rows.append([*own, float(is_candidate)])
                values.append(value)
        design, y = np.array(rows), np.array(values)
        inverse = np.linalg.inv(design.T @ design)
        fitted = inverse @ design.T @ y
        squares = float(((y - design @ fitted) ** 2).sum())
        freedom = len(y) - design.shape[1]
        variance = squares / freedom
        return cls(
            [float(fitted[2 * n + 1]) for n in range(len(boards))], float(fitted[-1]), squares, freedom,
            math.sqrt(variance), math.sqrt(variance * float(inverse[-1, -1])),
        )  # fmt: skip


def section() -> str:
    return (ROOT / "docs" / "explain" / "verdict-by-hand.md").read_text(encoding="utf-8")


def boards() -> list[list[tuple[bool, float]]]:
    """Return (is the candidate's, logarithm) of the boots that the page lists, in their order."""
    rows = re.findall(r"^\| b\d \| (.+) \|$", section(), flags=re.MULTILINE)
    cells = [[cell.split() for cell in row.split(" | ")] for row in rows]
    return [[(role == "C", math.log(float(value))) for role, value in row] for row in cells]


def test_the_verdict_by_hand_is_right() -> None:
    """Slopes, squares, error, z, boundary and interval of the page follow from its boots."""
    found = ByHand.of(boards())
    boundary = float(scipy.stats.t.isf(ALPHA, found.freedom))
    reach = boundary * found.error
    low, change, high = (
        math.expm1(at) * 100 for at in (found.effect - reach, found.effect, found.effect + reach)
    )
    for said in (
        *(f"{math.expm1(slope) * 100:+.2f} %" for slope in found.slopes),
        f"the change is {found.effect:.4f}",
        f"add up to {found.squares:.6f}, over 16 boots less {16 - found.freedom}",
        f"boots differ by {found.deviation * 100:.2f} %",
        f"= {found.error:.5f}. That is z = {found.effect / found.error:.1f}",
        f"exceeds {boundary:.2f} as rarely",
        f"**regressed**, by {change:.1f} % [{low:+.1f}, {high:+.1f}]",
    ):
        assert said in " ".join(section().split()), said


def test_the_gate_comes_to_the_same() -> None:
    """Difference, error and deviation are those by hand, to the last digits, and so is the decision."""
    found = ByHand.of(boards())
    own = [[FittedBoot(place, *boot) for place, boot in enumerate(board)] for board in boards()]
    seen = look_at(own, Design(((4, 4),), ALPHA, 0.05, math.log(1.10), math.log(1.03)), 1)
    assert seen.state == "regressed"
    by_hand = [found.effect, found.error, found.deviation]
    np.testing.assert_allclose([seen.difference, seen.error, seen.boot_deviation], by_hand, rtol=1e-10)
