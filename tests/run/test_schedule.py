# SPDX-License-Identifier: Apache-2.0
"""The planner: longest first, flashed seldom, one at a time on the air, and nothing lost with a board."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.base.errors import ConfigError
from hil.run.plan.schedule import Dispatcher, Item, Queue, Seat, lower_bound_s, simulate

ANY = frozenset({"a", "b"})
TWO = [Seat("a", "lab"), Seat("b", "lab")]


def item(
    name: str, seconds: float, *, firmware: str = "f", boards: frozenset[str] = ANY, **needs: bool
) -> Item:
    return Item(name, firmware, seconds, boards, **needs)


def order(items: Sequence[Item], seats: Sequence[Seat] = TWO, flash_s: float = 10.0) -> list[tuple[str, str]]:
    return [(name, board) for name, board, _begin in simulate(items, seats, flash_s=flash_s).begins]


def test_the_longest_comes_first() -> None:
    """What takes long begins early, or one board ends alone with it."""
    items = [item("short", 10), item("long", 100), item("middle", 60), item("other", 30)]
    found = simulate(items, TWO, flash_s=0)
    assert [name for name, _board, _begin in found.begins] == ["long", "middle", "other", "short"]
    assert found.makespan_s == lower_bound_s(items, TWO) == 100


def test_a_board_keeps_its_firmware_while_there_is_work_for_it() -> None:
    """Each of two boards is flashed once, though work comes in turns; a firmware that is there is used."""
    items = [item(f"{firmware}{n}", 50, firmware=firmware) for n in range(4) for firmware in ("f", "g")]
    assert simulate(items, TWO, flash_s=10).flashes == 2
    seats = [Seat("a", "lab", "g"), Seat("b", "lab", "f")]
    found = simulate(items, seats, flash_s=10)
    assert found.flashes == 0
    assert {board for name, board, _begin in found.begins if name.startswith("g")} == {"a"}


def test_nobody_is_flashed_for_what_others_end_sooner() -> None:
    """The last seconds of another firmware's work are left to the board that has it."""
    items = [item("f1", 100, firmware="f"), item("g1", 95, firmware="g"), item("f2", 15, firmware="f")]
    seats = [Seat("a", "lab", "f"), Seat("b", "lab", "g")]
    assert order(items, seats, flash_s=60)[-1] == ("f2", "a")


def test_the_air_is_held_by_one_and_never_left_idle() -> None:
    """Of what needs a rack's air one runs at a time; two racks have two airs; the rest goes on beside it."""
    items = [item(f"air{n}", 50, air=True) for n in range(4)] + [item(f"own{n}", 25) for n in range(4)]
    for seats, racks in ((TWO, 1), ([Seat("a", "lab"), Seat("b", "attic")], 2)):
        found = simulate(items, seats, flash_s=0)
        assert found.makespan_s == lower_bound_s(items, seats) == 200 if racks == 1 else 150
        for rack in {seat.rack for seat in seats}:
            boards = [seat.board for seat in seats if seat.rack == rack]
            begins = sorted(at for name, board, at in found.begins if "air" in name and board in boards)
            assert all(late - early >= 50 for early, late in itertools.pairwise(begins))


def test_what_is_alone_has_the_rack() -> None:
    """Nothing else runs on the rack meanwhile, and nobody waits for the rack to become still."""
    found = simulate([item("own", 30), item("quiet", 20, alone=True), item("more", 30)], TWO, flash_s=0)
    begins = {name: at for name, _board, at in found.begins}
    assert begins == {"quiet": 0, "own": 20, "more": 20}


def test_a_board_that_drops_out_leaves_its_work_to_others() -> None:
    """What it was at is done by another one; what no other can do is named, and nobody waits for it."""
    only = item("only-a", 10, boards=frozenset({"a"}))
    dispatcher = Dispatcher([item("any", 50), only, item("last", 5)], TWO, flash_s=1)
    first = dispatcher.next("a")
    assert first is not None
    assert first.id == "any"
    assert dispatcher.drop("a") == [only]
    names = []
    while (found := dispatcher.wait("b", lambda: None)) is not None:
        names.append(found.id)
        dispatcher.done("b")
    assert names == ["any", "last"]
    assert dispatcher.left == 0
    assert dispatcher.next("a") is None


def test_a_board_leaves_what_it_has_not_done_of_its_own() -> None:
    """Boards begin with a plan each: others wait for it to end, and get what its board says is left of it."""
    begun = {one: item(f"plan of {one}", 100) for one in ("a", "b")}
    dispatcher = Dispatcher([], TWO, flash_s=1, begun=begun)
    assert dispatcher.next("b") is None
    dispatcher.done("b")
    got: list[Item | None] = []
    waiting = threading.Thread(target=lambda: got.append(dispatcher.wait("b", lambda: None)))
    waiting.start()
    only = item("only-a", 10, boards=frozenset({"a"}))
    assert dispatcher.drop("a", [item("rest", 40), only]) == [only]
    waiting.join(60)
    assert [one.id for one in got if one] == ["rest"]
    dispatcher.done("b")
    assert dispatcher.wait("b", lambda: None) is None


def test_a_free_board_waits_for_what_another_may_not_end() -> None:
    """While work for it is under way elsewhere a board stays: it takes that over if the other drops out."""
    dispatcher = Dispatcher([item("one", 50)], TWO, flash_s=1)
    assert dispatcher.next("a") is not None
    taken: list[Item | None] = []
    thread = threading.Thread(target=lambda: taken.append(dispatcher.wait("b", lambda: None)))
    thread.start()
    assert dispatcher.drop("a") == []
    thread.join(timeout=60)
    assert [one and one.id for one in taken] == ["one"]


def test_of_those_that_wait_the_one_with_most_left_is_next() -> None:
    """What takes turns goes to the board that would end last; who waits may be told to stop."""
    queue, order_taken = Queue(), list[str]()

    def stop() -> None:
        raise TimeoutError

    queue.acquire("first", 1, lambda: None)
    with pytest.raises(TimeoutError):
        queue.acquire("impatient", 1000, stop)
    waiting = {"short": 10.0, "long": 50.0}
    seen = {board: threading.Event() for board in waiting}

    def wait_for(board: str) -> None:
        queue.acquire(board, waiting[board], seen[board].set)
        order_taken.append(board)
        queue.release()

    threads = [threading.Thread(target=wait_for, args=(board,)) for board in waiting]
    for thread in threads:
        thread.start()
    assert all(event.wait(60) for event in seen.values())
    queue.release()
    for thread in threads:
        thread.join()
    assert order_taken == ["long", "short"]


def test_a_plan_that_names_something_twice_is_refused() -> None:
    """A board at two racks, or an item that is there twice, is a mistake of whoever plans."""
    with pytest.raises(ConfigError, match="board a is planned twice"):
        Dispatcher([], [Seat("a", "lab"), Seat("a", "attic")], flash_s=1)
    with pytest.raises(ConfigError, match="item x is planned twice"):
        Dispatcher([item("x", 1), item("x", 1)], TWO, flash_s=1)


BOARDS = ("a", "b", "c", "d")
ITEMS = st.lists(
    st.builds(
        lambda firmware, seconds, boards, needs: (firmware, seconds, boards, needs),
        st.sampled_from("fgh"),
        st.floats(1, 100),
        st.frozensets(st.sampled_from(BOARDS), min_size=1),
        st.sampled_from(["", "", "air", "alone"]),
    ),
    max_size=25,
)


@given(ITEMS, st.sampled_from([0.0, 30.0]))
def test_all_is_done_once_by_who_can_and_within_the_rules(
    drawn: list[tuple[str, float, frozenset[str], str]], flash_s: float
) -> None:
    """Whatever the work: each item is done once by a board that can, and no two hold an air at once."""
    items = [
        Item(str(n), firmware, seconds, boards, air=needs == "air", alone=needs == "alone")
        for n, (firmware, seconds, boards, needs) in enumerate(drawn)
    ]
    by_id = {one.id: one for one in items}
    seats = [Seat(board, f"rack{n % 2}") for n, board in enumerate(BOARDS)]
    rack_of = {seat.board: seat.rack for seat in seats}
    found = simulate(items, seats, flash_s=flash_s)
    assert sorted(name for name, _board, _at in found.begins) == sorted(by_id)
    spans = [(rack_of[board], at, at + by_id[name].seconds, by_id[name]) for name, board, at in found.begins]
    assert all(board in by_id[name].boards for name, board, _at in found.begins)
    for n, (rack, begin, end, one) in enumerate(spans):
        for other_rack, other_begin, other_end, other in spans[n + 1 :]:
            if rack == other_rack and begin < other_end and other_begin < end:
                assert not any((one.alone, other.alone))
                assert not (one.air and other.air)
    assert found.makespan_s >= lower_bound_s(items, seats) - 1e-6
