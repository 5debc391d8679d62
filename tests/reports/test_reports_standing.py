# SPDX-License-Identifier: Apache-2.0
"""What stands wherever a run's figures do: whether anything was changed, what rack and boards are worth."""

from __future__ import annotations

from typing import Any

import pytest

from hil.model import KINDS, UNREAL, Verdict
from hil.reports.boards import UNCHANGED_REMARK, remarks
from hil.reports.kinds import EMULATED_REMARK, VIRTUAL_REMARK, kind_remark, mark, unreal
from tests.make_records import run_info

VERDICT = Verdict("r", "pass", 0, "", (), (), ())


def told(kind: str = "physical", **info: Any) -> list[str]:
    boards = [{"id": "b1", "kind": kind, "target": "esp32"}]
    return remarks(run_info(rack="lab", boards=boards, **info), VERDICT)


@pytest.mark.parametrize(
    ("standing", "words"),
    [
        ({"state": "qualified", "judgements": 200, "needed": 200}, ""),
        ({"state": "advisory", "judgements": 48, "needed": 200}, "Advisory: 48 of 200 "),
        ({"state": "advisory", "judgements": None, "needed": 200}, "Advisory: no history "),
        ({"state": "not fit", "judgements": 400, "needed": 200}, "Not fit: rack lab "),
    ],
)
def test_a_comparison_says_what_its_racks_check_is_worth(standing: dict[str, Any], words: str) -> None:
    """Of a rack of real boards; a virtual one has its own remark."""
    found = told(standing=standing)
    assert len(found) == bool(words)
    assert all(one.startswith(words) and "hil rack qualify" in one for one in found)
    assert len(told("virtual", standing=standing)) == 1


def test_unchanged_firmware_is_told() -> None:
    """Whoever reads of a regression there knows that it is a false one."""
    assert told(compared={"role": "base", "firmware": {}, "unchanged": True}) == [UNCHANGED_REMARK]
    assert told(compared={"role": "base", "firmware": {}}) == []


def test_every_kind_but_silicon_has_its_remark() -> None:
    """What it is worth is said once for each kind; the words stand where a form says, nothing for silicon."""
    assert kind_remark(["physical"]) == ""
    assert kind_remark(["virtual", "physical", "virtual"]) == VIRTUAL_REMARK
    assert kind_remark(["virtual", "emulated"]) == f"{EMULATED_REMARK} {VIRTUAL_REMARK}"
    assert unreal(KINDS) == UNREAL
    assert mark(["emulated"], " ({})") == " (emulated)"
    assert mark(["virtual", "emulated"], ", {}") == ", emulated, virtual"
    assert mark(["physical"], " ({})") == ""
