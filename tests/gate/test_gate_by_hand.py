# SPDX-License-Identifier: Apache-2.0
"""The verdict that docs/explain/comparisons.md works out by hand is the gate's."""

from __future__ import annotations

import math
import re
from statistics import fmean

from hil.gate.compare.values import Boots, Design, look_at, spread_of
from tests.lab import ROOT


def test_the_verdict_by_hand_is_the_gates() -> None:
    """Boots, deviations, error, z, boundary and interval of the page are those that the gate computes."""
    page = (ROOT / "docs" / "explain" / "comparisons.md").read_text(encoding="utf-8")
    section = page.partition("## A verdict by hand\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| b\d \| ([\d., ]+) \| ([\d., ]+) \|$", section, flags=re.MULTILINE)
    boards = [Boots(*([math.log(float(one)) for one in side.split(",")] for side in row)) for row in rows]
    seen = look_at(boards, Design(((3, 3),), 0.005, 0.05, math.log(1.10), math.log(1.03)), 1)
    spread = spread_of(boards, 0.0)
    first = seen.effects[0]
    assert seen.state == "regressed"
    low, change, high = (math.expm1(at) * 100 for at in (seen.low, seen.difference, seen.high))
    apart = (seen.effects[1].difference - first.difference) / math.hypot(first.error, seen.effects[1].error)
    alone = first.difference / first.error
    for said in (
        f"b1 {fmean(boards[0].candidate):.4f} − {fmean(boards[0].other):.4f} = {first.difference:.4f}",
        f"{spread.variance:.6f}, so boots differ by {seen.boot_deviation * 100:.2f} %",
        f"here {spread.freedom:.1f} remain of\n   8",
        f"= {first.error**2:.6f}. Both weigh alike: the change is {seen.difference:.4f}",
        f"= {seen.error:.5f}. That is z = {seen.z:.1f}",
        f"exceeds {seen.boundary:.2f} as rarely",
        f"b1 is\n   {alone:.1f} errors above nothing, and b2 lies {apart:.1f} above b1",
        f"**regressed**, by {change:.1f} % [{low:+.1f}, {high:+.1f}]",
    ):
        assert said in section
