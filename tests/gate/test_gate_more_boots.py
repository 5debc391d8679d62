# SPDX-License-Identifier: Apache-2.0
"""The verdict on a run that was taken further: what it said of its end before holds no more."""

from __future__ import annotations

import pytest

from hil.gate import judge
from hil.model import NotRun
from tests.gate.compare_records import BOARDS, CASE_ID, boots, comparison, thresholds
from tests.make_records import RUN_ID

LOOKS = ((4, 4), (8, 8))
WHY = "the time budget of 15 min ended after look 1 of 1"


def test_a_case_that_was_measured_further_was_not_cut_off() -> None:
    """What the time budget ended is told of boards that have no boot afterwards, and of no other."""
    first, second = boots(LOOKS, effect=0.07, deviation=0.25)
    cut_off = [NotRun(RUN_ID, board, CASE_ID, WHY, "cut-off") for board in BOARDS]
    entries = [comparison(looks=LOOKS, unasked=1), *first, *cut_off]
    limits = {"publish": thresholds()}
    assert judge(entries, limits).not_run == tuple(cut_off)
    more = [record for record in second if record.board != BOARDS[0]]
    assert judge([*entries, *more], limits).not_run == (cut_off[0],)
    (item,) = judge([*entries, *second], limits).compared
    assert WHY not in item.sentence


@pytest.mark.parametrize("there", [1, 13, 31])
def test_a_look_that_was_broken_off_decides_nothing(there: int) -> None:
    """The comparison says what it said before these boots were asked for; when all are there, more."""
    first, _ = boots(LOOKS, effect=0.15, deviation=0.25)
    _, second = boots(LOOKS, effect=0.5, deviation=0.2)
    entries, limits = [comparison(looks=LOOKS, unasked=1), *first], {"publish": thresholds()}
    (before,) = judge(entries, limits).compared
    assert before.outcome == "undecided"
    assert judge([*entries, *second[:there]], limits).compared == (before,)
    (after,) = judge([*entries, *second], limits).compared
    assert (after.outcome, after.candidate_boots) == ("regressed", 8 * len(BOARDS))


@pytest.mark.parametrize("there", [1, 4, 6])
def test_a_planned_look_that_was_broken_off_decides_nothing(there: int) -> None:
    """Where the budget ended a run before its last planned look, that one is asked for too: nothing is judged
    by the boots of it that one board has, all of its own or not. The comparison is cut off as it was."""
    looks = ((2, 2), (4, 4), (7, 7), (12, 12))
    first, second, third, _ = boots(looks, deviation=0.08, seed=6)
    cut_off = [NotRun(RUN_ID, board, CASE_ID, WHY, "cut-off") for board in BOARDS]
    entries = [comparison(looks=looks, unasked=3), *first, *second, *cut_off]
    limits = {"publish": thresholds()}
    before = judge(entries, limits)
    assert before.outcome == "undecided"
    own = [record for record in third if record.board == BOARDS[0]]
    after = judge([*entries, *own[:there]], limits)
    assert (after.compared, after.not_run) == (before.compared, before.not_run)
    assert judge([*entries, *third], limits).outcome == "pass"


def test_a_look_of_one_board_alone_is_whole() -> None:
    """Where only one board was measured further, it has its boots, and the others are not missed."""
    first, second = boots(LOOKS, effect=0.07, deviation=0.25)
    own = [record for record in second if record.board == BOARDS[0]]
    entries, limits = [comparison(looks=LOOKS, unasked=1), *first, *own], {"publish": thresholds()}
    (item,) = judge(entries, limits).compared
    assert item.candidate_boots == 4 * len(BOARDS) + 4
