# SPDX-License-Identifier: Apache-2.0
"""Boot loops that compare: looks, turns, cases that are decided, boards that fail, stops and budgets."""

from __future__ import annotations

import io
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
from rich.console import Console

from hil.base.errors import ConfigError, FirmwareError, NoAnswerError, RigError
from hil.base.flash_command import LABEL
from hil.boards.firmware.build_folder import Image
from hil.boards.rack import Board
from hil.fixtures.progress import BarWatcher, LineWatcher
from hil.model import Case, Comparison, Entry, Fault, NotRun, RunRecord
from hil.run.boot_loop import BootLoop
from hil.run.interfaces import RunEvent
from hil.run.plan import Plan
from hil.run.rounds import BEGIN_S, Comparing, Rounds, longest_s
from tests.run.boot_loop_rig import CASES, RACK, V1, V2, WAIT_S, FakeRig, ignore, plan_of, run

IMAGE = Image(V1.target)
LOOKS = ((2, 2), (4, 4), (6, 6))
COMPARISON = Comparison(
    run_id="r",
    rack=RACK.name,
    image=str(IMAGE),
    target=V1.target,
    boards=("v1", "v2"),
    role="base",
    candidate_sha256="c",
    other_sha256="b",
    looks=LOOKS,
    cases=tuple(case.case_id for case in CASES),
)

Judge = Callable[[Comparison, Sequence[Entry]], frozenset[str]]


def boots_of(entries: Sequence[Entry], board: str = "v1") -> Counter[tuple[str, str]]:
    """Count the records of a board by case and role."""
    return Counter((e.case_id, e.role) for e in entries if isinstance(e, RunRecord) and e.board == board)


def open_until(**looks: int) -> Judge:
    """Return a judge to whom the case q0, q1 or q2 is decided after so many looks."""

    def judge(comparison: Comparison, entries: Sequence[Entry]) -> frozenset[str]:
        most = max(entry.boot_index for entry in entries if isinstance(entry, RunRecord)) + 1
        look = 1 + sum(sum(look) < most for look in comparison.looks)
        return frozenset(case.case_id for case in CASES if look < looks[f"q{case.parameters['qos']}"])

    return judge


def comparing(judge: Judge, *, budget_s: float = 900.0, **changes: object) -> Comparing:
    return Comparing({IMAGE: replace(COMPARISON, **changes)}, judge, budget_s)  # type: ignore[arg-type]


def test_cases_are_measured_until_they_are_decided() -> None:
    """Each case has the boots of the looks that it needed, on both boards; nothing is measured after."""
    rig = FakeRig()
    run(plan_of(V1, V2), rig, comparing(open_until(q0=1, q1=2, q2=9)))
    for board in ("v1", "v2"):
        counts = boots_of(rig.entries, board)
        for role in ("candidate", "base"):
            assert [counts[case.case_id, role] for case in CASES] == [2, 4, 6]
    assert len(rig.found(RunRecord)) == len(rig.entries)


def test_boots_are_counted_over_both_roles() -> None:
    """boot_index is the position among the board's boots, whichever firmware it boots."""
    rig = FakeRig()
    run(plan_of(V1), rig, comparing(open_until(q0=9, q1=9, q2=9), boards=("v1",)))
    places = sorted({(e.boot_index, e.role) for e in rig.entries if isinstance(e, RunRecord)})
    assert [index for index, _role in places] == list(range(12))
    assert [role for _board, role in rig.roles] == [role for _index, role in places]


def lying(entries: Sequence[Entry], board: str) -> list[int]:
    """Return the candidate's slot in each boot of a board, in their order."""
    slots = {
        entry.boot_index: int(entry.environment["rig"]["slot"] or 0) ^ (entry.role != "candidate")
        for entry in entries
        if isinstance(entry, RunRecord) and entry.board == board
    }
    return [slots[index] for index in sorted(slots)]


def test_the_builds_swap_their_slots() -> None:
    """The second look swaps both builds in its middle, and the third has them as they lie, so that they had
    three boots either way; two boards lie each the other way. A swap flashes a board, and each record names
    the slot of its boot."""
    rig = FakeRig()
    run(plan_of(V1, V2), rig, comparing(open_until(q0=9, q1=9, q2=9)))
    first = lying(rig.entries, "v1")[0]
    for board, slot in (("v1", first), ("v2", 1 - first)):
        assert lying(rig.entries, board) == [slot] * 6 + [1 - slot] * 6
        assert [step for step, own, _image in rig.steps if own == board].count("flash") == 2


def test_a_board_that_is_brought_back_has_its_builds_where_they_were() -> None:
    """A board falls silent in the second look and is erased: its builds lie as they did since its middle, and
    so do they where another board is flashed because of it."""
    rig = FakeRig(ladder=("erase and re-flash",))
    silent: list[Board] = []

    def measure(board: Board, _case: Case) -> None:
        if board is V1 and not silent and sum(boots_of(rig.entries).values()) == 7 * len(CASES):
            silent.append(board)
            raise NoAnswerError("not a byte came.", in_use=True)

    rig.on_measure = measure
    run(plan_of(V1), rig, comparing(open_until(q0=9, q1=9, q2=9), boards=("v1",)))
    assert [step for step, _board, _image in rig.steps].count("erase and re-flash") == 1
    slots = lying(rig.entries, "v1")
    assert slots == [slots[0]] * 6 + [1 - slots[0]] * 6


def test_a_board_that_a_command_flashes_has_no_slots_to_swap() -> None:
    """Each build is written when it is its turn, so that a swap would be a flash for nothing."""
    board = replace(V1, labels=(*V1.labels, LABEL))
    rig = FakeRig()
    run(plan_of(board), rig, comparing(open_until(q0=9, q1=9, q2=9), boards=("v1",)))
    assert set(lying(rig.entries, "v1")) == {0}
    assert [step for step, _board, _image in rig.steps].count("flash") == 1


def test_the_decision_is_made_once_for_all_boards() -> None:
    """After each look but the last, one thread asks once, when all boards have their boots."""
    rig = FakeRig()
    asked: list[tuple[int, int]] = []

    def judge(comparison: Comparison, entries: Sequence[Entry]) -> frozenset[str]:
        assert comparison in entries
        asked.append(tuple(sum(boots_of(entries, board).values()) for board in ("v1", "v2")))  # type: ignore[arg-type]
        return frozenset(comparison.cases)

    run(plan_of(V1, V2), rig, comparing(judge))
    assert asked == [(12, 12), (24, 24)]


def test_an_item_is_told_as_soon_as_its_case_is_decided() -> None:
    """What is decided after look 1 is reported while others are still measured."""
    rig = FakeRig()
    later, reported = threading.Event(), threading.Event()

    def hold(_board: Board, case: Case) -> None:
        if case is CASES[2] and boots_of(rig.entries)[case.case_id, "candidate"] == 2:
            later.set()
            assert reported.wait(WAIT_S)

    rig.on_measure = hold
    two = comparing(open_until(q0=1, q1=1, q2=2), boards=("v1",))
    loop = BootLoop(plan_of(V1), rig, run_id="r", notify=ignore, comparing=two)
    loop.start()
    assert later.wait(WAIT_S)
    assert len(loop.wait("v1", CASES[0])) == 4
    reported.set()
    assert len(loop.wait("v1", CASES[2])) == 8
    loop.stop()


def test_a_board_that_fails_in_look_2_is_not_waited_for() -> None:
    """The other board goes through all looks; the failed one's open cases say how many boots they miss."""
    rig = FakeRig()

    def fail(board: Board, case: Case) -> None:
        if board is V1 and case is CASES[1] and boots_of(rig.entries)[CASES[1].case_id, "candidate"] == 3:
            raise RigError("the cable fell out")

    rig.on_measure = fail
    run(plan_of(V1, V2), rig, comparing(open_until(q0=1, q1=9, q2=9)))
    assert sum(boots_of(rig.entries, "v2").values()) == 4 + 12 + 12
    (fault,) = rig.found(Fault)
    assert (fault.board, fault.case_id) == ("v1", CASES[1].case_id)
    missing = {entry.case_id: entry.reason for entry in rig.found(NotRun)}
    assert set(missing) <= {CASES[1].case_id, CASES[2].case_id}  # the first one was decided
    assert all("the cable fell out" in reason for reason in missing.values())


def test_a_gate_that_cannot_judge_ends_every_board() -> None:
    """An error of the decision reaches all boards, as the configuration's, and none waits for ever."""
    rig = FakeRig()

    def refuse(_comparison: Comparison, _entries: Sequence[Entry]) -> frozenset[str]:
        raise ConfigError("two rules match")

    run(plan_of(V1, V2), rig, comparing(refuse))
    assert sorted((entry.board, entry.exit_code) for entry in rig.found(Fault)) == [("v1", 2), ("v2", 2)]


def test_a_stop_wakes_a_board_that_waits_for_the_others() -> None:
    """v1 has its boots and waits for v2, which hangs: a stop ends both, and no fault is left behind."""
    rig = FakeRig()
    waiting = threading.Event()

    def watch(event: RunEvent) -> None:
        if event.stage == "waiting for the other boards":
            waiting.set()

    all_open = comparing(open_until(q0=9, q1=9, q2=9))
    loop = BootLoop(plan_of(V1, V2), rig, run_id="r", notify=watch, comparing=all_open)

    def hang(board: Board) -> None:  # while it is flashed: a hang in a case would keep the air from v1
        if board is V2:
            raise_after(loop.stopping)

    rig.on_flash = hang
    loop.start()
    assert waiting.wait(WAIT_S)
    loop.stop("interrupted")
    assert not any(thread.is_alive() for thread in loop._threads)
    assert not rig.found(Fault)


def raise_after(event: threading.Event) -> None:
    """Hang until the run is stopped."""
    assert event.wait(WAIT_S)
    raise RigError("the run was stopped")


def test_a_look_is_expected_to_take_as_long_as_its_boots() -> None:
    """Four boots took 60 s: so do the next four; 10 s before the budget's end no third look begins."""
    now = [0.0]
    open_cases = comparing(lambda comparison, _entries: frozenset(comparison.cases), budget_s=130.0)
    rounds = Rounds(IMAGE, open_cases, boards=["v1"], now_s=lambda: now[0], entries=list)
    looks = rounds.looks("v1", CASES, check=lambda: None, on_wait=lambda: None, given_up=())
    ended = []
    for now[0] in (0.0, 60.0, 120.0):
        ended.append(next(looks).ended)
    assert ended[:2] == ["", ""]
    assert re.match(r".*\b10 s .* look 3 .* 1 min", ended[2])


@pytest.mark.parametrize(("budget_s", "ended"), [(179.0, 2), (239.0, 3), (241.0, None)])
def test_a_look_with_another_flash_is_expected_to_take_longer(budget_s: float, ended: int | None) -> None:
    """Flashing takes 40 s and a boot 10 s: after 6 boots and 100 s, the 4 of look 2, which swaps the slots,
    take 80 s, and the 6 of look 3, which does not, 60 s."""
    now, looks = [0.0], ((3, 3), (5, 5), (8, 8))
    open_cases = comparing(lambda one, _entries: frozenset(one.cases), budget_s=budget_s, looks=looks)
    rounds = Rounds(IMAGE, open_cases, boards=["v1"], now_s=lambda: now[0], entries=list)
    for look in rounds.looks("v1", CASES, check=lambda: None, on_wait=lambda: None, given_up=()):
        assert bool(look.ended) == (look.number == ended)
        with rounds.flashing():
            now[0] += 40.0 if look.number < 3 else 0.0
        now[0] += 10.0 * len(look.boots)
    assert look.number == (ended or 3)


def test_a_budget_ends_the_looks() -> None:
    """Without time for another look the open cases are left out with the reason, which is no failure."""
    rig = FakeRig()
    run(plan_of(V1, V2), rig, comparing(open_until(q0=1, q1=9, q2=9), budget_s=1e-3))
    assert sum(boots_of(rig.entries).values()) == 12
    left = rig.found(NotRun)
    assert {(e.board, e.case_id) for e in left} == {
        (v, one.case_id) for v in ("v1", "v2") for one in CASES[1:]
    }
    assert all("look 1 of 3" in entry.reason and not entry.expected for entry in left)


@dataclass
class BusyRig(FakeRig):
    """A rack whose air others have for ``others_s`` before each case, by a clock that nothing else moves."""

    others_s: float = 0.0
    clock_s: float = 1.0

    @contextmanager
    def lease_air(self, *, check_stop: Callable[[], None]) -> Iterator[None]:
        self.clock_s += self.others_s
        with super().lease_air(check_stop=check_stop):
            yield


@pytest.mark.parametrize(("others_s", "own_s", "looks"), [(1000.0, 1.0, 3), (0.0, 200.0, 1)])
def test_what_other_runs_hold_is_no_time_of_the_budget(
    others_s: float, own_s: float, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that shares its rack has as many looks as one alone; what it measures spends the budget."""
    rig = BusyRig(others_s=others_s)

    def measure(_board: object, _case: object) -> None:
        rig.clock_s += own_s

    rig.on_measure = measure
    monkeypatch.setattr("hil.run.boot_loop.time.monotonic", lambda: rig.clock_s)
    run(plan_of(V1), rig, comparing(open_until(q0=9, q1=9, q2=9), boards=("v1",)))
    assert sum(boots_of(rig.entries).values()) == 4 * 3 * looks
    assert bool(rig.found(NotRun)) == (looks == 1)


def test_identical_images_are_not_booted() -> None:
    """Where candidate and base are the same bytes nothing is flashed; each item learns why, however late."""
    rig = FakeRig()
    same = comparing(open_until(), looks=(), identical=True)
    assert longest_s(plan_of(V1, V2), same) >= BEGIN_S
    loop = run(plan_of(V1, V2), rig, same)
    assert rig.steps == []
    (entry,) = loop.wait("v2", CASES[0])
    assert isinstance(entry, NotRun)
    assert ("byte for byte" in entry.reason, entry.expected) == (True, False)


@pytest.mark.parametrize("step", ["boot base", f"{CASES[1].case_id} base"])
def test_a_base_that_fails_is_not_the_candidates_fault(step: str) -> None:
    """What the base cannot boot or measure is not compared, with the reason; the candidate's boots stand."""
    rig = FakeRig({("v1", step): FirmwareError("unknown bench")})
    run(plan_of(V1), rig, comparing(open_until(q0=2, q1=9, q2=2), boards=("v1",)))
    assert not rig.found(Fault)
    failing = CASES if step == "boot base" else CASES[1:2]
    assert {entry.case_id for entry in rig.found(NotRun)} == {case.case_id for case in failing}
    assert all(
        "the base " in entry.reason and ": unknown bench" in entry.reason for entry in rig.found(NotRun)
    )
    counts = boots_of(rig.entries)
    for case in CASES:
        both = (counts[case.case_id, "candidate"], counts[case.case_id, "base"])
        assert both == ((2, 0) if case in failing else (4, 4))


def test_a_base_that_failed_is_not_booted_for_it_again() -> None:
    """Once is enough, also within a look: each case is left out once, and the progress adds up."""
    rig = FakeRig({("v1", "boot base"): FirmwareError("panic")})
    events: list[RunEvent] = []
    one = comparing(open_until(q0=9, q1=9, q2=9), boards=("v1",), looks=((3, 3),))
    loop = BootLoop(plan_of(V1), rig, run_id="r", notify=events.append, comparing=one)
    loop.start()
    loop.wait("v1", CASES[2])
    loop.stop()
    assert rig.roles.count(("v1", "base")) == 1
    assert sorted(entry.case_id for entry in rig.found(NotRun)) == sorted(case.case_id for case in CASES)
    assert sum(boots_of(rig.entries).values()) == 3 * len(CASES)
    assert events[-1].done == events[-1].total


def test_a_candidate_that_fails_beside_a_base_is_the_firmwares() -> None:
    """The same failure in a boot of the candidate ends the board with its fault."""
    rig = FakeRig({("v1", f"{CASES[1].case_id} candidate"): FirmwareError("panic")})
    run(plan_of(V1), rig, comparing(open_until(q0=9, q1=9, q2=9), boards=("v1",)))
    assert [entry.exit_code for entry in rig.found(Fault)] == [1]


def test_progress_names_the_look() -> None:
    """The total grows look by look, and the words say which look it is and how much is open."""
    rig = FakeRig()
    events: list[RunEvent] = []
    two = comparing(open_until(q0=1, q1=2, q2=2), boards=("v1",))
    loop = BootLoop(plan_of(V1), rig, run_id="r", notify=events.append, comparing=two)
    loop.start()
    loop.wait("v1", CASES[2])
    loop.stop()
    looks = list(dict.fromkeys(event.look for event in events))
    assert looks[0] == "look 1 of 3"
    assert looks[1].startswith("look 2 of 3, 2 cases open, 1")
    assert looks[1].endswith(" min left")
    assert events[0].total == 12
    assert (events[-1].done, events[-1].total) == (20, 20)


def test_a_line_says_which_look_it_is() -> None:
    """The look stands before what happens; without a comparison a line is as it was."""
    stream = io.StringIO()
    watcher = LineWatcher(stream)
    watcher.notify(RunEvent("v1", "measuring", 3, 9, "publish qos=1", "look 2 of 5, 1 case open"))
    watcher.notify(RunEvent("v1", "booting", 0, 9))
    lines = ["v1 [3/9] look 2 of 5, 1 case open: measuring: publish qos=1", "v1 [0/9] booting"]
    assert stream.getvalue().splitlines() == lines


def test_a_line_says_how_long_the_run_takes() -> None:
    """All boards by the plan, more and more at the pace of what is measured; flashing does not count."""
    stream, times = io.StringIO(), iter((0.0, 50.0, 60.0, 80.0, 170.0, 171.0))
    watcher = LineWatcher(stream, clock=lambda: next(times))
    told = [("v1", "flashing", 0), ("v1", "measuring", 0), ("v2", "measuring", 0), ("v1", "booting", 3)]
    for board, stage, done in (*told, ("v1", "done", 10), ("v2", "done", 10)):
        watcher.notify(RunEvent(board, stage, done, 10, done_s=4.0 * done, left_s=40.0 - 4.0 * done))
    counts = [line.partition("]")[0] for line in stream.getvalue().splitlines()]
    left = ["v1 [0/10, 40 s left", "v1 [0/10, 40 s left", "v2 [0/10, 80 s left", "v1 [3/10, 2 min left"]
    assert counts == [*left, "v1 [10/10, 2 min left", "v2 [10/10"]


def test_what_is_left_by_the_plan_comes_with_each_event() -> None:
    """It falls to nothing as a board's cases are measured, each by its own length."""
    slow = tuple(Case("jitter", {"count": count, "period_us": 1_000_000}) for count in (10, 50))
    (board,) = plan_of(V1).boards
    events: list[RunEvent] = []
    rig = FakeRig()
    loop = BootLoop(Plan("all", (replace(board, boots=(slow,)),)), rig, run_id="r", notify=events.append)
    loop.start()
    for case in slow:
        loop.wait("v1", case)
    loop.stop()
    assert events[0].done_s == 0
    assert 60 <= events[0].left_s <= 65
    assert {round(one.done_s + one.left_s) for one in events} == {round(events[0].left_s)}
    assert 10 <= next(one.done_s for one in events if one.done == 1) <= 12
    assert (events[-1].stage, events[-1].left_s) == ("done", 0.0)


def test_an_image_that_is_not_compared_has_its_boots_as_always() -> None:
    """In a run that compares one image, another one is measured as without a base."""
    slow = tuple(Case("jitter", {"tick_hz": "100", "period_us": period_us}) for period_us in (1000, 10_000))
    rig = FakeRig()
    (board,) = plan_of(V1).boards
    plan = Plan("all", (replace(board, boots=(CASES, slow)),))
    run(plan, rig, comparing(open_until(q0=1, q1=1, q2=1), boards=("v1",)))
    assert {role for (case_id, role) in boots_of(rig.entries) if case_id == slow[0].case_id} == {"candidate"}
    assert [image for step, _board, image in rig.steps if step == "flash"][1] == f"{V1.target}+tick100"


def test_a_bar_has_one_line_of_its_terminal() -> None:
    """Board, counts and case, cut where they do not fit; the last line has all boards and the time left."""
    console = Console(width=80, height=24, file=io.StringIO(), force_terminal=True, record=True)
    watcher = BarWatcher(console, clock=lambda: 0.0)
    long = "publish transport=mtls,payload_bytes=16384,qos=2,interval_us=40000"
    for board in ("virtual-esp32s3-1", "virtual-esp32s3-2"):
        watcher.notify(RunEvent(board, "measuring", 100, 360, long, "look 2 of 5", left_s=3500.0))
    watcher.close()
    *boards, together = re.split(r"(?=virtual-esp32s3|\ball\b)", console.export_text())[-3:]
    assert all(len(line.rstrip()) <= 80 for line in (*boards, together))
    assert all(" 100/360 look 2 of 5 · measuring: publish" in line for line in boards)
    assert together.rstrip().endswith("200/720 117 min left")
