# SPDX-License-Identifier: Apache-2.0
"""A night on two racks in which things happen to boards and coordinator: nothing is lost, all is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tools import night
from tools.night import BOARDS, CASES, HELD, TROUBLES, Night, table


@pytest.mark.slow
@pytest.mark.heavy
def test_a_night_survives_what_happens_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    """A board unplugged, one hung, one wrong, one in a brown-out loop, and a new coordinator in the middle:
    each is named and recovered or kept out, and others measure what it could not."""
    assert night.main([]) == 0, capsys.readouterr().out
    assert f"{CASES} of {CASES} cases measured" in capsys.readouterr().out


def entry(kind: str, board: str, **facts: Any) -> Mapping[str, Any]:
    return {"type": kind, "board": board, **facts}


def good_night() -> Night:
    entries = [entry("record", "b1", case_id=f"publish/n={number}") for number in range(CASES)]
    for one in TROUBLES:
        if one.owner:
            entries.append(entry("fault", one.board, owner=one.owner, sentence=f"It was {one.says}."))
        else:
            entries.append(entry("recovery", one.board, cause="It was silent.", by=one.says))
    entries.append(entry("not-run", "b2", cause="handed-over", to="b1", case_id="publish/n=1"))
    kept_out = frozenset(one.board for one in TROUBLES if one.ends == "quarantined")
    return Night(2, HELD, entries, {"not_run": []}, kept_out)


def test_a_night_as_it_has_to_be_is_in_the_table() -> None:
    """A row a board: what happened, what was reported, whose it is, what became of it, who has its cases."""
    lines, wrong = table(good_night())
    assert wrong == []
    assert len(lines) == 1 + BOARDS
    (row,) = (line for line in lines if line.startswith("b2 "))
    assert "unplugged" in row
    assert row.endswith("quarantined  1 to b1")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"quarantined": frozenset({"b2"})}, "b5: not flashed, not quarantined"),
        ({"entries": good_night().entries[1:]}, f"{CASES - 1} of {CASES} cases"),
        ({"entries": [*good_night().entries, good_night().entries[0]]}, "publish/n=0: measured 2 times"),
        ({"verdict": {"not_run": [{"expected": True, "case_id": "publish/n=3"}]}}, "1 cases were not run"),
        ({"said": ""}, "did not hold its places again"),
        ({"status": 0}, "the run ended with 0"),
        ({"entries": [one for one in good_night().entries if one["board"] != "b6"]}, "fault is nobody's"),
    ],
)
def test_what_is_not_as_it_has_to_be_is_told(change: dict[str, Any], says: str) -> None:
    """A board that is not kept out, a case that is lost or measured twice, a fault that nobody reports."""
    _lines, wrong = table(replace(good_night(), **change))
    assert any(says in one for one in wrong), wrong
