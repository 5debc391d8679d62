# SPDX-License-Identifier: Apache-2.0
"""A run that spreads its cases: each once a target, and what a board that fails leaves is another one's."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from hil.base.errors import FirmwareError, HilError, NoAnswerError, RigError
from hil.boards.firmware.build_folder import Image
from hil.boards.rack import Board
from hil.gate import judge
from hil.model import Case, Comparison, Entry, Fault, NotRun, Rung, RunRecord
from hil.run.boot_loop import BootLoop
from hil.run.plan import BoardPlan, Omitted, Plan, kept_plan, spread
from hil.run.rounds import Comparing
from tests.lab import wait_for
from tests.run.boot_loop_rig import V1, FakeRig, ignore, run

CASES = tuple(Case("publish", {"qos": qos, "count": 1000 + count}) for qos in (0, 1) for count in range(6))
B1, B2, B3 = BOARDS = tuple(replace(V1, id=f"b{n}", mac=f"02:00:00:00:00:0{n}") for n in (1, 2, 3))
OTHER = replace(V1, id="s1", chip="esp32s3")
WIDE = Case("publish", {"qos": 0, "count": 100, "payload_bytes": 65536})


def planned(
    boards: Sequence[Board] = BOARDS,
    *,
    boots: int = 1,
    quarantine: Mapping[str, str] = {},
    cases: Sequence[Case] = CASES,
) -> Plan:
    whole = Plan("quick", tuple(BoardPlan(board, (tuple(cases),) * boots, ()) for board in boards))
    return spread(whole, quarantine=quarantine)


def owners(plan: Plan) -> dict[str, list[str]]:
    """Return the boards that measure each case."""
    return {c.case_id: [p.board.id for p in plan.boards if c in p.cases] for c in CASES}


def measured(entries: Sequence[Entry]) -> dict[str, set[str]]:
    """Return by case the boards that have records of it."""
    found: dict[str, set[str]] = {}
    for entry in entries:
        if isinstance(entry, RunRecord):
            found.setdefault(entry.case_id, set()).add(entry.board)
    return found


def test_each_case_is_once_a_target_and_the_same_each_time() -> None:
    """On one board of each target, evenly; the same plan comes out again, whatever the boards' order."""
    plan = planned((*BOARDS, OTHER))
    assert all(len(found) == 2 and "s1" in found for found in owners(plan).values())
    assert sorted(len(board.cases) for board in plan.boards[:3]) == [4, 4, 4]
    assert owners(planned((*BOARDS, OTHER))) == owners(plan)
    ids = {board.id for board in BOARDS}
    assert set(plan.takers.values()) == {frozenset(), *(frozenset(ids - {one}) for one in ids)}


def test_what_a_board_in_quarantine_would_measure_is_given_to_others() -> None:
    """What these measure stays; the board's own share says who has it, and why. Without another board it says
    why alone."""
    before, plan = owners(planned()), planned(quarantine={"b2": "quarantined by anna"})
    after = owners(plan)
    assert all(after[case] == board for case, board in before.items() if board != ["b2"])
    assert all(len(found) == 1 and found != ["b2"] for found in after.values())
    (out,) = (board for board in plan.boards if board.board.id == "b2")
    assert {one.case.case_id for one in out.omitted} == {case for case in before if before[case] == ["b2"]}
    for one in out.omitted:
        assert f"board {after[one.case.case_id][0]}, " in one.reason
        assert one.reason.endswith("b2 is quarantined by anna")
    assert not any("b2" in others for others in plan.takers.values())  # nor does it take over
    alone = planned((B1,), quarantine={"b1": "quarantined by anna"})
    assert [one.reason for one in alone.boards[0].omitted] == ["quarantined by anna"] * len(CASES)
    assert not alone.present


def test_a_board_in_quarantine_is_not_touched() -> None:
    """Not even asked what its rack can do for it: it need not be there. The others measure all."""

    class Rig(FakeRig):
        def rungs(self, board: Board) -> tuple[Rung, ...]:
            if board.id == "b2":
                raise RigError("there is no board b2.")
            return super().rungs(board)

    rig = Rig()
    run(planned(quarantine={"b2": "quarantined by anna"}), rig)
    assert not rig.found(Fault)
    assert measured(rig.entries).keys() == {case.case_id for case in CASES}


def test_what_only_some_boards_can_measure_is_theirs() -> None:
    """A board's limits hold; what no board of the target can measure is left out once, with the reason."""
    too_wide = Omitted(WIDE, "too wide for it")
    boards = tuple(
        BoardPlan(board, (CASES if board is B1 else (*CASES, WIDE),), (too_wide,) if board is B1 else ())
        for board in (B1, B2)
    )
    plan = spread(Plan("quick", boards), quarantine={})
    assert [WIDE in board.cases for board in plan.boards] == [False, True]
    assert [board.omitted for board in plan.boards] == [(), ()]
    assert plan.takers["b2", WIDE.case_id] == frozenset()
    nobody = Plan("quick", tuple(BoardPlan(board, (CASES,), (too_wide,)) for board in (B1, B2)))
    assert [board.omitted for board in spread(nobody, quarantine={}).boards] == [(too_wide,), ()]


def test_a_board_without_cases_stays_to_take_some_over() -> None:
    """Of one case on two boards the other board is in the plan; what pytest left out nobody takes over."""
    plan = planned((B1, B2), cases=CASES[:1])
    (owner,) = owners(plan)[CASES[0].case_id]
    assert len(kept_plan(plan, {(owner, CASES[0].case_id)}).boards) == 2
    assert kept_plan(plan, set()).boards == ()


@pytest.mark.parametrize("boots", [1, 3])
def test_what_a_board_leaves_is_measured_by_others(boots: int) -> None:
    """A board dies at its second case: that case and the rest are measured by the others, in all of their
    boots on one board; the journal says who has each, and items get the records of whoever measured."""
    plan = planned(boots=boots)
    own = plan.for_board("b1").cases
    rig = FakeRig({("b1", own[1].case_id): NoAnswerError("it is silent.")})
    loop = run(plan, rig)
    found = measured(rig.entries)
    assert found.keys() == {case.case_id for case in CASES}
    handed = {entry.case_id: entry for entry in rig.found(NotRun)}
    left = own if boots > 1 else own[1:]
    assert handed.keys() == {case.case_id for case in left}
    for case in left:
        entry = handed[case.case_id]
        assert (entry.cause, entry.expected) == ("handed-over", False)
        assert re.search(rf"board {entry.to} .* board b1 .*: it is silent", entry.reason)
        records = [e for e in loop.wait("b1", case) if isinstance(e, RunRecord)]
        assert [e.board for e in records] == [entry.to] * boots
        assert len({e.boot_index for e in records}) == boots
        assert loop.measured_by("b1", case) == entry.to
    keys = [(e.board, e.boot_index, e.case_id) for e in rig.found(RunRecord)]
    assert len(set(keys)) == len(keys)
    assert [entry.board for entry in rig.found(Fault)] == ["b1"]


def test_what_nobody_can_measure_any_more_is_named() -> None:
    """All boards die one after the other: each case is measured, or not run with the reason of the last."""
    plan = planned((B1, B2))
    dead: dict[tuple[str, str], HilError] = {
        (board, CASES[-1].case_id): NoAnswerError(f"{board} died.") for board in ("b1", "b2")
    }
    rig = FakeRig({**dead, ("b1", "flash"): NoAnswerError("b1 is unplugged.")})
    run(plan, rig)
    found, said = measured(rig.entries), [entry for entry in rig.found(NotRun) if entry.expected]
    faulted = {entry.case_id for entry in rig.found(Fault) if entry.case_id}
    assert found.keys() | {one.case_id for one in said} | faulted == {case.case_id for case in CASES}
    assert faulted == {CASES[-1].case_id}
    assert said
    assert all("failed before: " in one.reason and "No other board" in one.reason for one in said)


def test_a_case_that_stops_the_firmware_stops_one_board_only() -> None:
    """What panics is not handed on to do the same to the next board; the rest of that board's cases is."""
    plan = planned()
    own = plan.for_board("b1").cases
    rig = FakeRig({(board.id, own[0].case_id): FirmwareError("it panicked.") for board in BOARDS})
    run(plan, rig)
    (fault,) = rig.found(Fault)
    assert (fault.board, fault.case_id) == ("b1", own[0].case_id)
    assert measured(rig.entries).keys() == {case.case_id for case in CASES} - {own[0].case_id}


def test_a_case_is_compared_on_the_board_that_took_it_over() -> None:
    """Candidate and base of a case that was handed over are both the other board's, in all looks."""
    plan = planned((B1, B2))
    image = Image("virtual-esp32")
    looks = ((1, 1), (3, 3))
    ids = tuple(case.case_id for case in CASES)
    comparison = Comparison(
        "r", "virtual", str(image), "virtual-esp32", ("b1", "b2"), "base", "f", "g", looks, cases=ids
    )
    rig = FakeRig({("b1", "flash"): NoAnswerError("b1 is unplugged.")})
    run(plan, rig, Comparing({image: comparison}))
    counts = Counter((entry.board, entry.case_id, entry.role) for entry in rig.found(RunRecord))
    assert counts == {("b2", case, role): 3 for case in ids for role in ("candidate", "base")}


def test_the_verdict_says_who_took_over_and_misses_what_is_nowhere() -> None:
    """A warning counts the cases; a run that was killed after a case was handed on lacks it on its new board,
    and one that failed there is not missed twice."""
    case = CASES[0].case_id
    handed = [NotRun("r", one, case, "…", "handed-over", to) for one, to in (("b1", "b2"), ("b2", "b3"))]
    verdict = judge(handed, {}, {("b1", case): 1})
    assert [(one.board, one.cause) for one in verdict.not_run if one.expected] == [("b3", "ended")]
    assert verdict.exit_code == 4
    assert [one for one in verdict.warnings if "b1" in one and "1 by b2" in one]
    failed = NotRun("r", "b3", case, "board b3 failed before: no power.")
    assert judge([*handed, failed], {}, {("b1", case): 1}).not_run == (*handed, failed)


def test_a_stop_leaves_nothing_untold() -> None:
    """Boards are stopped while what another one left waits for them: each case is measured or said to be
    not."""
    plan = planned((B1, B2))
    rig = FakeRig({("b1", "flash"): NoAnswerError("b1 is unplugged.")})
    loop = BootLoop(plan, rig, run_id="r", notify=ignore)
    going, go_on = threading.Event(), threading.Event()

    def hold(board: Board, _case: Case) -> None:
        if board.id == "b2":
            going.set()
            assert go_on.wait(60)

    rig.on_measure = hold
    loop.start()
    assert going.wait(60)
    wait_for(lambda: bool(rig.found(Fault)), lambda: "no fault came")
    assert [entry.board for entry in rig.found(Fault)] == ["b1"]
    loop.stopping.set()
    go_on.set()
    loop.stop("the run was interrupted")
    told = {entry.case_id for entry in rig.found(NotRun)}
    assert told | measured(rig.entries).keys() == {case.case_id for case in CASES}
    waiting = [entry for entry in rig.found(NotRun) if entry.board == "b1"]
    assert {entry.cause for entry in waiting} == {"ended"}
    assert all("the run was interrupted" in entry.reason for entry in waiting)
