# SPDX-License-Identifier: Apache-2.0
"""The verdict that docs/explain/comparisons.md works out by hand is the gate's."""

from __future__ import annotations

import math
import re

import numpy as np

from hil.gate.compare.boards import differences
from hil.gate.compare.sequential import REGRESSED, Design, decide
from tests.lab import ROOT


def test_the_verdict_by_hand_is_the_gates() -> None:
    """Boots, deviations, error, z, boundary and interval of the page are those that the gate computes."""
    page = (ROOT / "docs" / "explain" / "comparisons.md").read_text(encoding="utf-8")
    section = page.partition("## A verdict by hand\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| b\d \| ([\d., ]+) \| ([\d., ]+) \|$", section, flags=re.MULTILINE)
    sides = [np.log([[[float(one) for one in row[side].split(",")] for row in rows]]) for side in (0, 1)]
    found = decide(*sides, Design(((3, 3),), 0.005, 0.05, math.log(1.10), math.log(1.03)))
    boards = differences(*sides, np.zeros(1))
    assert found.state[0] == REGRESSED
    low, change, high = (math.expm1(float(at[0])) * 100 for at in (found.low, found.difference, found.high))
    for said in (
        f"b1 {sides[0][0, 0].mean():.4f} − {sides[1][0, 0].mean():.4f} = {found.effects[0, 0]:.4f}",
        f"{boards.boot_variance[0]:.6f}, so boots differ by {found.boot_deviation[0] * 100:.2f} %",
        f"here {boards.freedom[0]:.1f} remain of\n   8",
        f"= {boards.variance[0, 0]:.6f}. Both weigh alike: the change is {found.difference[0]:.4f}",
        f"= {found.error[0]:.5f}. That is z = {found.z[0]:.1f}",
        f"exceeds {found.boundary[0]:.2f} as rarely",
        f"**regressed**, by {change:.1f} % [{low:+.1f}, {high:+.1f}]",
    ):
        assert said in section
