# SPDX-License-Identifier: Apache-2.0
"""The campaign of faults: one of each family for real, and what is made of rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tools.chaos.__main__ import FAMILIES, Campaign, plans
from tools.chaos.table import lines, page, summary
from tools.chaos.trial import Row

ROW = Row(
    fault="broker: killed", moment="measuring", reported="? NOT MEASURED: RIG: the broker | <was> killed.",
    owner="rig", status=3, recovered="next run", recovery_s=9.5, lost=0, left=[], next_run="yes",
)  # fmt: skip
SMOKE = ("host: run killed while measuring", "input: thresholds torn")
MORE_FAMILIES = (
    "board: hang that a reset mends",
    "air: blackout of 1 s",
    "broker: frozen for 3 s",
    "security: what ps shows",
)


def test_every_kind_of_fault_is_in_the_list() -> None:
    """At least 120 kinds, each with a name of its own; each pair of families; a hundred kills; every fault
    that a run takes is tried with a slower firmware, too."""
    names = [plan.name for plan in plans(1)]
    assert len(names) == len(set(names))
    kinds = list(itertools.chain(*FAMILIES))
    assert len(kinds) >= 120
    pairs = [{fault.family for fault in plan.faults} for plan in plans(1) if len(plan.faults) == 2]
    assert len(pairs) == len({frozenset(pair) for pair in pairs}) == 15
    assert sum(name.startswith("kill: ") for name in names) == 100
    slower = [plan for plan in plans(1) if plan.slower]
    assert len(slower) >= 20
    assert all(plan.owners(plan.faults) == {"a regression"} for plan in slower)
    assert [plan.name for plan in plans(1)] != [plan.name for plan in plans(2)]


def test_a_wrong_row_is_named() -> None:
    """What is wrong stands below its row, and the sentence at the end counts it; no line of a table wraps. A
    row has nine cells, whatever the run reported."""
    wrong = replace(ROW, fault="air: loss", owner="a regression", wrong=["owner a regression, not rig"])
    table = lines([ROW, replace(wrong, reported="x" * 300)], 80)
    assert [line for line in table if line.startswith(("✓", "✗"))] == ["✗ air: loss", "✓ broker: killed"]
    assert f"  wrong: {wrong.wrong[0]}" in table
    assert max(len(line) for line in table if "xxx" in line) == 80
    assert "(rig 1, a regression 1): 1 " in summary([ROW, wrong])
    row = next(line for line in page([ROW]).splitlines() if "broker: killed" in line)
    assert row.replace("\\|", "").count("|") == 10
    assert "`? NOT MEASURED" in row


def test_a_stopped_campaign_goes_on(tmp_path: Path) -> None:
    """What is on disk is not done again; a torn last line is. A row stays only where what its fault may be
    called is what it was; a wrong one as long as it may."""
    path = tmp_path / "seed-1.jsonl"
    path.write_text(ROW.to_json() + "\n" + ROW.to_json()[:40])
    assert Campaign(1, path).rows == {ROW.fault: ROW}
    plan, other, third = plans(1)[:3]
    right = replace(ROW, fault=plan.name, judged=plan.judge)
    wrong = replace(right, fault=other.name, judged=other.judge, wrong=["the next run"])
    rows = (right, wrong, replace(right, fault=third.name, judged="of before"))
    path.write_text("".join(row.to_json() + "\n" for row in rows))
    campaign = Campaign(1, path)
    campaign.forget([plan, other, third], wrong=False)
    assert set(campaign.rows) == {plan.name, other.name}
    campaign.forget([plan, other, third], wrong=True)
    assert set(campaign.rows) == {plan.name}


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("names", [SMOKE, pytest.param(MORE_FAMILIES, marks=pytest.mark.heavy)])
def test_faults_of_each_family_are_answered_rightly(tmp_path: Path, names: Sequence[str]) -> None:
    """Owner, sentence, nothing lost, nothing left, the next run untouched: as in the whole campaign."""
    wanted = [plan for plan in plans(1) if plan.name in names]
    assert len(wanted) == len(names)
    campaign = Campaign(1, tmp_path / "seed-1.jsonl")
    campaign.run(wanted, workers=len(names) // 2)
    assert [row.to_json() for row in campaign.rows.values() if row.wrong] == []
    assert set(campaign.rows) == set(names)
