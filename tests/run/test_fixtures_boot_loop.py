# SPDX-License-Identifier: Apache-2.0
"""The boot loop over boards that behave, fail, hang and stop."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.errors import FirmwareError, RigError
from hil.boards.firmware.build_folder import Image
from hil.boards.rack import Board
from hil.model import Case, Fault, NotRun, RunRecord
from hil.run.boot_loop import BootLoop
from hil.run.interfaces import RunEvent
from hil.run.plan import BoardPlan, Omitted, Plan
from hil.run.turns import Waits
from tests.run.boot_loop_rig import CASES, RACK, V1, V2, WAIT_S, FakeRig, ignore, plan_of, run


def test_every_case_of_every_boot_is_recorded() -> None:
    """Two boards, two boots, three cases: twelve records, each (board, boot, case) once."""
    rig = FakeRig()
    run(plan_of(V1, V2, boots=2), rig)
    keys = {(e.board, e.boot_index, e.case_id) for e in rig.entries if isinstance(e, RunRecord)}
    assert len(rig.entries) == len(keys) == 12


def test_one_boards_fault_leaves_the_other_alone() -> None:
    """A fault ends its board: one fault entry, the rest of that board not run with the reason."""
    rig = FakeRig({("v1", CASES[1].case_id): FirmwareError("panic in v1")})
    loop = run(plan_of(V1, V2), rig)
    assert [e.case_id for e in rig.entries if isinstance(e, RunRecord) and e.board == "v2"] == [
        case.case_id for case in CASES
    ]
    first, second, third = (loop.wait("v1", case)[0] for case in CASES)
    assert isinstance(first, RunRecord)
    assert isinstance(second, Fault)
    assert (second.exit_code, second.owner) == (1, "firmware")
    assert isinstance(third, NotRun)
    assert "panic in v1" in third.reason


@pytest.mark.parametrize("faulty", [True, False])
def test_boots_that_were_not_measured_are_missing(faulty: bool) -> None:
    """A fault or a stop in boot 3 of 4: each case gets a NotRun that says in how many boots it is missing."""
    rig = FakeRig()
    loop = BootLoop(plan_of(V1, boots=4), rig, run_id="r", notify=ignore)
    counted = itertools.count(1)

    def break_in_boot_3(board: Board, case: Case) -> None:
        if next(counted) == 2 * len(CASES) + 2:
            if not faulty:
                loop.stopping.set()
            raise FirmwareError("panic in v1")

    rig.on_measure = break_in_boot_3
    loop.start()
    results = [loop.wait("v1", case) for case in CASES] if faulty else []
    assert faulty or loop.stopping.wait(10)
    loop.stop("interrupted")
    missing = {e.case_id: e.reason.partition(": ")[0] for e in rig.entries if isinstance(e, NotRun)}
    second = "in 1 of 4 boots" if faulty else "in 2 of 4 boots"  # a fault is an entry of its own
    assert list(missing.values()) == ["in 1 of 4 boots", second, "in 2 of 4 boots"]
    assert all(e.expected for e in rig.entries if isinstance(e, NotRun))
    assert all(any(isinstance(e, NotRun) for e in entries) for entries in results)  # what fails the items


def test_a_board_that_cannot_be_flashed_is_a_rig_fault() -> None:
    """A flash fault is the rig's, and every case of that board is not run."""
    rig = FakeRig({("v1", "flash"): RigError("port taken")})
    run(plan_of(V1, V2), rig)
    assert [(e.exit_code, e.board) for e in rig.entries if isinstance(e, Fault)] == [(3, "v1")]
    assert sum(isinstance(e, NotRun) for e in rig.entries) == len(CASES)


def test_a_defect_of_the_harness_is_not_the_firmwares() -> None:
    """An unexpected exception becomes a rig fault that quotes it, in one line; the other board goes on."""
    rig = FakeRig()

    def trip(board: Board, case: Case) -> None:
        if board.id == "v1":
            raise ZeroDivisionError("oops")

    rig.on_measure = trip
    run(plan_of(V1, V2), rig)
    (fault,) = [e for e in rig.entries if isinstance(e, Fault)]
    assert (fault.exit_code, fault.board) == (3, "v1")
    said, _, where = fault.sentence.partition(" (")
    assert said.endswith(": ZeroDivisionError('oops')")
    assert where.startswith("test_fixtures_boot_loop.py:")
    assert "\n" not in where
    assert sum(isinstance(e, RunRecord) for e in rig.entries) == len(CASES)


def test_the_air_is_held_by_one_board_at_a_time() -> None:
    """Boards take turns: no two cases are measured at the same moment."""
    rig = FakeRig()
    inside: list[str] = []
    overlaps: list[list[str]] = []

    def measure(board: Board, case: Case) -> None:
        inside.append(board.id)
        if len(inside) > 1:
            overlaps.append(list(inside))
        threading.Event().wait(0.01)
        inside.remove(board.id)

    rig.on_measure = measure
    run(plan_of(*RACK.boards), rig)
    assert sum(isinstance(e, RunRecord) for e in rig.entries) == 12
    assert not overlaps


SLOW = tuple(Case("jitter", {"tick_hz": "100", "period_us": period_us}) for period_us in (1000, 10_000))


def test_each_image_is_flashed_once_and_then_booted_for_its_cases() -> None:
    """The stages follow each other; each case has its boots 0…n-1, whichever image it runs on."""
    rig = FakeRig()
    run(Plan("all", (BoardPlan(V1, (CASES, CASES, SLOW, SLOW), ()),)), rig)
    fast, slow = (str(Image(V1.target, tick_hz)) for tick_hz in (1000, 100))
    expected = [(step, image) for image in (fast, slow) for step in ("flash", "boot", "boot")]
    assert [(step, image) for step, _board, image in rig.steps] == expected
    boots = sorted((entry.case_id, entry.boot_index) for entry in rig.entries)  # type: ignore[union-attr]
    assert boots == sorted((case.case_id, boot) for case in (*CASES, *SLOW) for boot in (0, 1))


def test_a_fault_in_the_first_stage_leaves_out_the_second_one() -> None:
    """Each case that was not measured in all of its boots says so, those of the other image too."""
    rig = FakeRig({("v1", CASES[2].case_id): FirmwareError("panic in v1")})
    loop = run(Plan("all", (BoardPlan(V1, (CASES, CASES, SLOW), ()),)), rig)
    told = [entry for case in (*CASES, *SLOW) for entry in loop.wait("v1", case) if isinstance(entry, NotRun)]
    counted = [entry.reason.partition("board")[0] for entry in told]
    assert counted == ["in 1 of 2 boots: ", "in 1 of 2 boots: ", "in 1 of 2 boots: ", "", ""]


@pytest.mark.parametrize("alone", [True, False])
def test_a_case_that_is_measured_alone_has_the_rack(tmp_path: Path, alone: bool) -> None:
    """Nothing is flashed while such a case is measured, but as soon as it is over; beside others it is."""
    rig = FakeRig(locks=tmp_path)
    measuring, flashed = threading.Event(), threading.Event()
    beside: list[bool] = []

    def hold_back_v2() -> None:
        assert threading.current_thread().name != "board-v2" or measuring.wait(WAIT_S)

    def measure(board: Board, case: Case) -> None:
        if board is V1:
            measuring.set()
            beside.append(flashed.wait(0.3 if alone else WAIT_S))

    rig.before_rack, rig.on_measure = hold_back_v2, measure
    rig.on_flash = lambda board: flashed.set() if board is V2 else None
    boards = (BoardPlan(V1, ((SLOW[0],),), ()), BoardPlan(V2, ((CASES[0],),), ()))
    loop = BootLoop(Plan("all", boards), rig, run_id="r", notify=ignore, alone=("jitter",) if alone else ())
    loop.start()
    assert isinstance(loop.wait("v2", CASES[0])[0], RunRecord)
    assert isinstance(loop.wait("v1", SLOW[0])[0], RunRecord)
    loop.stop()
    assert beside == [not alone]


class Clock:
    """The host's clock, which can be put forward."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead_s

    def pass_an_hour(self) -> None:
        self.ahead_s += 3600.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of a run that has some seconds of its own."""
    clock = Clock()
    for module in ("boot_loop", "turns"):
        monkeypatch.setattr(f"hil.run.{module}.time", clock)
    monkeypatch.setattr("hil.run.boot_loop.longest_s", lambda *_: WAIT_S)
    return clock


@pytest.mark.parametrize("waits_for", ["rack", "air"])
def test_the_wait_for_another_run_is_not_this_runs_time(clock: Clock, waits_for: str) -> None:
    """A run that may not flash while another one measures alone, or whose whole time is spent while another
    one has the air, goes on when that is over."""
    rig = FakeRig(**{f"before_{waits_for}": clock.pass_an_hour})  # type: ignore[arg-type]
    assert not run(plan_of(V1, V2), rig)._is_overdue()
    assert len(rig.found(RunRecord)) == 2 * len(CASES)


def test_threads_that_wait_at_once_wait_for_one_time() -> None:
    """Two boards that wait for the same moment put a run's end off once, not twice."""
    waits, free = Waits(), threading.Event()

    @contextmanager
    def lease() -> Iterator[None]:
        assert free.wait(WAIT_S)
        yield

    def hold() -> None:
        with waits.entering(lease()):
            pass

    threads = [threading.Thread(target=hold) for _ in range(2)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    while not waits.total_s() > 0.1:
        time.sleep(0.01)
    free.set()
    for thread in threads:
        thread.join(WAIT_S)
    assert 0.1 < waits.total_s() <= time.monotonic() - begun
    assert waits.total_s() == waits.total_s()


def test_omitted_cases_are_in_the_journal() -> None:
    """A case beyond a board's limits is written down as not run, with its reason, and as not expected."""
    extra = Case("publish", {"qos": 9})
    rig = FakeRig()
    run(plan_of(V1, omitted=[Omitted(extra, "too large")]), rig)
    assert [(e.reason, e.expected) for e in rig.entries if isinstance(e, NotRun)] == [("too large", False)]


def test_stop_ends_a_board_in_the_middle() -> None:
    """A stopped run writes down what it did not measure, and starts no further case."""
    rig = FakeRig()
    measuring = threading.Event()
    loop = BootLoop(plan_of(V1), rig, run_id="r", notify=ignore)

    def until_stopped(board: Board, case: Case) -> None:
        measuring.set()
        assert loop.stopping.wait(WAIT_S)

    rig.on_measure = until_stopped
    loop.start()
    assert measuring.wait(WAIT_S)
    loop.stop("interrupted")
    reasons = [(e.reason, e.expected) for e in rig.entries if isinstance(e, NotRun)]
    assert reasons == [("interrupted", True)] * 2
    assert sum(isinstance(e, RunRecord) for e in rig.entries) == 1


def test_a_board_that_waits_for_its_companion_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that hears no stop has its companion stopped, before stop() returns and the network goes."""
    monkeypatch.setattr("hil.run.boot_loop.UNWIND_DEADLINE_S", 0.1)
    rig = FakeRig()
    measuring = threading.Event()

    def until_the_companion_ends(board: Board, case: Case) -> None:
        measuring.set()
        assert rig.companions_stopped.wait(WAIT_S)
        raise RigError("the companion was killed")

    rig.on_measure = until_the_companion_ends
    loop = BootLoop(plan_of(V1), rig, run_id="r", notify=ignore)
    loop.start()
    assert measuring.wait(WAIT_S)
    loop.stop("interrupted")
    assert rig.companions_stopped.is_set()
    assert not any(thread.is_alive() for thread in loop._threads)
    assert [e.reason for e in rig.entries if isinstance(e, NotRun)] == ["interrupted"] * 3
    assert not any(isinstance(e, Fault) for e in rig.entries)


def test_a_run_that_waits_for_another_runs_air_can_be_stopped() -> None:
    """While another run holds the air nothing is measured, and a stop is heard at once."""
    rig = FakeRig()
    rig.air_is_free.clear()
    waiting = threading.Event()

    def watch(event: RunEvent) -> None:
        if event.stage == "waiting for the air":
            waiting.set()

    loop = BootLoop(plan_of(V1), rig, run_id="r", notify=watch)
    loop.start()
    assert waiting.wait(WAIT_S)
    loop.stop("interrupted")
    assert [e.reason for e in rig.entries if isinstance(e, NotRun)] == ["interrupted"] * 3
    assert not any(thread.is_alive() for thread in loop._threads)


def test_progress_counts_what_is_done() -> None:
    """Whoever watches sees the stages in order, and the count reach the total."""
    events: list[RunEvent] = []
    loop = BootLoop(plan_of(V1), FakeRig(), run_id="r", notify=events.append)
    loop.start()
    loop.wait("v1", CASES[-1])
    loop.stop()
    stages = [event.stage for event in events if not event.stage.startswith("waiting")]
    assert stages == ["flashing", "booting", *["measuring"] * 3, "done"]
    assert (events[-1].done, events[-1].total) == (3, 3)


def test_a_board_without_power_of_its_own_is_still_a_board() -> None:
    """A plan with nothing to measure on a board finishes at once."""
    nothing = replace(plan_of(V1).boards[0], boots=())
    rig = FakeRig()
    loop = BootLoop(Plan("quick", (nothing,)), rig, run_id="r", notify=ignore)
    loop.start()
    loop.stop()
    assert rig.entries == []
