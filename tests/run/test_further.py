# SPDX-License-Identifier: Apache-2.0
"""What more boots of a run would be for: read from its journal, look by look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from hil.model import Comparison, Entry, NotRun, RunRecord
from hil.run.further import Further, find_further
from tests.gate.compare_records import BOARDS, CASE_ID, boots, comparison, thresholds
from tests.make_records import RUN_ID

LOOKS = ((4, 4), (8, 8))
ENTRY = comparison(looks=LOOKS, unasked=1)
NOISE: Mapping[str, float] = {"effect": 0.07, "deviation": 0.25}
ALL = {(board, CASE_ID) for board in BOARDS}


def further(entries: Sequence[Entry]) -> tuple[Further, ...]:
    return find_further(entries, {"publish": thresholds()})


def looks(entry: Comparison = ENTRY, **kwargs: object) -> list[list[RunRecord]]:
    """Return the records of each look of a run whose noise hides what it looks for, unless told otherwise."""
    return boots(entry.looks, **{**(NOISE if not kwargs else {}), **kwargs})  # type: ignore[arg-type]


def test_what_is_open_is_taken_further_on_all_its_boards() -> None:
    """Behind the looks that are whole, with the boots that the last look has more."""
    first, _second = looks()
    (found,) = further([ENTRY, *first])
    assert (found.comparison, found.whole, found.boots, found.pairs) == (ENTRY, 1, (4, 4), ALL)


def test_nothing_is_taken_further_that_is_decided_or_has_no_look_left() -> None:
    """A comparison that passed; one that is undecided after all of its looks."""
    first, _second = looks(effect=0.0, deviation=0.01)
    assert further([ENTRY, *first]) == ()
    assert further([ENTRY, *(record for look in looks() for record in look)]) == ()


@pytest.mark.parametrize("boots_there", [1, 5, 31])
def test_a_look_that_was_broken_off_is_gone_on_with(boots_there: int) -> None:
    """What is there of it neither decides anything nor is forgotten: the same is open as before it."""
    first, second = looks()
    assert further([ENTRY, *first, *second[:boots_there]]) == further([ENTRY, *first])


def test_looks_that_the_budget_ended_are_gone_through_first() -> None:
    """Where a look of the run's own is missing, more boots begin with it."""
    entry = comparison(looks=((4, 4), (6, 6), (8, 8)), unasked=2)
    first, *_ = looks(entry)
    (found,) = further([entry, *first, *(NotRun(RUN_ID, b, CASE_ID, "time", "cut-off") for b in BOARDS)])
    assert (found.whole, found.boots, found.pairs) == (1, (4, 4), ALL)


def test_what_a_board_cannot_measure_is_not_asked_of_it() -> None:
    """A base that failed in a case on one board is not booted for it again."""
    first, _second = looks()
    there = [record for record in first if record.board != BOARDS[0] or record.role == "candidate"]
    left = NotRun(RUN_ID, BOARDS[0], CASE_ID, "not compared: the base could not measure it", "not-compared")
    (found,) = further([ENTRY, *there, left])
    assert found.pairs == {(board, CASE_ID) for board in BOARDS[1:]}


def test_only_the_board_that_is_in_the_way_is_measured_further() -> None:
    """Three boards agree that nothing changed, one contradicts: more boots of that one, and then no more."""
    odd = BOARDS[2]
    first, second = looks(effects={odd: 0.5}, deviation=0.01)
    (found,) = further([ENTRY, *first])
    assert found.pairs == {(odd, CASE_ID)}
    assert further([ENTRY, *first, *(record for record in second if record.board == odd)]) == ()


def test_an_odd_board_among_others_that_know_too_little_is_not_measured_alone() -> None:
    """Where the others are undecided without it, too, all are measured further."""
    first, _second = looks(effects={BOARDS[2]: 3.0}, deviation=0.2)
    (found,) = further([ENTRY, *first])
    assert found.pairs == ALL
