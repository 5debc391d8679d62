# SPDX-License-Identifier: Apache-2.0
"""The looks of a comparison: what the budget pays, the order of boots, and where both builds lie."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.model import Comparison, Looks, Role
from hil.run.plan.looks import (
    FIRST,
    BootPace,
    draw,
    flashes,
    lying,
    order,
    plan_looks,
    steps,
)

BUDGET_S = 900.0
MOST = 40
ROLES: tuple[Role, Role] = ("candidate", "base")
PACES = st.builds(
    BootPace,
    st.lists(st.floats(0.5, 60), min_size=1, max_size=8).map(tuple),
    st.floats(1, 40),
    st.floats(0, 120),
)


@given(PACES, st.integers(2, 200), st.floats(1, 7200))
def test_the_last_look_is_as_large_as_the_budget_allows(pace: BootPace, most: int, budget_s: float) -> None:
    """The first look is always there, each has more boots than the one before, the last ends within the
    budget and the board's boots, and a boot more of each build would not."""
    looks = plan_looks(pace, max_boots=most, budget_s=budget_s)
    totals = [sum(look) for look in looks]
    assert looks[0] == (FIRST, FIRST)
    assert all(before < now for before, now in itertools.pairwise(totals))
    if looks != steps(FIRST):
        assert pace.looks_s(looks) <= budget_s
        assert totals[-1] <= most
    for last in range(looks[-1][0] + 1, most // 2 + 1):
        assert pace.looks_s(steps(last)) > budget_s


@given(PACES, st.floats(1, 7200), st.floats(1, 7200))
def test_a_larger_budget_never_has_fewer_boots(pace: BootPace, one_s: float, other_s: float) -> None:
    """Whatever the boards and their pace."""
    less, more = (plan_looks(pace, max_boots=MOST, budget_s=s) for s in sorted((one_s, other_s)))
    assert less[-1] <= more[-1]


@pytest.mark.parametrize(
    ("boards", "looks"),
    [
        (1, ((3, 3), (5, 5), (8, 8), (16, 16))),
        (2, ((3, 3), (5, 5), (8, 8), (15, 15))),
        (4, ((3, 3), (5, 5), (8, 8))),
    ],
)
def test_a_quarter_of_an_hour_has_its_looks(boards: int, looks: Looks) -> None:
    """Boards of one chip or two: 12 s of cases a boot and board, 12 s to boot, 40 s to write both builds."""
    assert plan_looks(BootPace((12.0,) * boards), max_boots=MOST, budget_s=BUDGET_S) == looks


@pytest.mark.parametrize("last", range(FIRST, 51))
@pytest.mark.parametrize("roles", [ROLES, ROLES[::-1]])
def test_a_drift_falls_on_both_builds_alike(last: int, roles: tuple[Role, Role]) -> None:
    """Each look has as many boots of each; over all so far, and over those of the look alone, the mean places
    of both differ by less than one boot, and a role never comes three times in turn."""
    looks, done = steps(last), list[Role]()
    for look, added in zip(looks, order(looks, roles), strict=True):
        done += added
        assert (done.count("candidate"), done.count("base")) == look
        for of in (done, list(added)):
            places = [[at for at, role in enumerate(of) if role == side] for side in ROLES]
            assert abs(sum(places[0]) - sum(places[1])) <= min(2, len(places[0]))
    assert done[0] == roles[0]
    assert max(len(list(same)) for _role, same in itertools.groupby(done)) <= 2


@pytest.mark.parametrize("last", range(FIRST, 51))
def test_both_builds_are_in_both_slots(last: int) -> None:
    """In the first of several looks they lie one way; after each later look either build had a boot each way,
    and after the last one, or an only look, three eighths of its boots."""
    for looks in (steps(last), ((last, last),)):
        ways, done = lying(looks), list[tuple[bool, Role]]()
        assert len(looks) == 1 or set(ways[0]) == {False}
        for look, own, roles in zip(looks, ways, order(looks, ROLES), strict=True):
            done += zip(own, roles, strict=True)
            for role, way in itertools.product(ROLES, (False, True)):
                if look != steps(last)[0]:
                    is_last = look == looks[-1] and look[0] > 4
                    assert done.count((way, role)) >= (look[0] * 3 / 8 if is_last else 1)


def test_one_swap_in_the_second_look_makes_eight_boots_equal() -> None:
    """Four boots of each build lie either way at the last look of 3, 5 and 8, where the decision falls."""
    ways = [way for look in lying(steps(8)) for way in look]
    assert (ways.count(False), ways.count(True)) == (8, 8)


@pytest.mark.parametrize(
    ("looks", "times"), [(steps(8), (1, 1, 0)), (steps(16), (1, 1, 0, 1)), (((6, 6),), (2,)), ((), ())]
)
def test_the_builds_are_written_at_first_and_at_each_swap(looks: Looks, times: tuple[int, ...]) -> None:
    """Look by look, as the budget counts them: eight boots take one swap, sixteen another."""
    assert flashes(looks) == times


@pytest.mark.parametrize("count", range(1, 9))
def test_what_is_drawn_is_balanced_over_the_boards(count: int) -> None:
    """Half of the boards have the candidate in slot 0 at first, and half boot it first; which ones differs
    from run to run, and is the same for a run whoever asks."""
    boards = tuple(f"b{number}" for number in range(count))
    found = set()
    for run in range(60):
        one = Comparison(f"r{run}", "lab", "esp32", "esp32", boards, "base", "c", "b", ((3, 3),))
        drawn = [draw(one, board) for board in boards]
        assert abs(2 * sum(each.slot for each in drawn) - count) <= 1
        assert abs(2 * sum(each.candidate_first for each in drawn) - count) <= 2
        assert drawn == [draw(one, board) for board in boards]
        draw(one, "a board that took over")
        found.add((drawn[0].slot, drawn[0].candidate_first))
    assert len(found) == 4
