# SPDX-License-Identifier: Apache-2.0
"""The ladder: each rung only where the one before failed, and whose fault it was."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from hil.base.errors import ConfigError, FirmwareError, HilError, NoAnswerError, RigError
from hil.boards.rack import Board
from hil.model import Case, Comparison, Fault, Recovery, Rung, RunRecord
from hil.run.recovery import RECOVERIES_MAX
from hil.run.rounds import Comparing
from hil.virtual.board.client import BoardControl
from tests.lab import Lab, of_type, wait_for, write_suites
from tests.run.boot_loop_rig import CASES, V1, V2, FakeRig, plan_of, run

ALL: tuple[Rung, ...] = ("reset", "power cycle", "hub cycle", "erase and re-flash")
WITH_BASE: tuple[Rung, ...] = (*ALL, "base image")
IMAGE = plan_of(V1).images[0]
COMPARISON = Comparison("r", "lab", str(IMAGE), V1.target, (V1.id,), "base", "c", "b", ((1, 1),))
BASE = Comparing({IMAGE: COMPARISON})


@dataclass
class HangingRig(FakeRig):
    """The first board falls silent at its second case, until ``mends`` is climbed; "" where nothing does."""

    ladder: tuple[Rung, ...] = ALL
    mends: str = ""
    hangs: bool = True
    in_use: bool = True
    silent: list[Board] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.on_measure = self.measure
        self.on_climb = self.climbed

    def measure(self, board: Board, case: Case) -> None:
        if board is V1 and case == CASES[1] and self.hangs:
            self.silent.append(board)
            self.hangs = False
            raise NoAnswerError("not a byte came.", in_use=self.in_use)

    def climbed(self, board: Board, rung: Rung) -> None:
        if rung == self.mends:
            self.silent.remove(board)

    def step(self, board: Board, name: str) -> None:
        if board in self.silent and name == "boot":
            if self.mends != "reset":
                raise NoAnswerError("no boot.")
            self.silent.remove(board)
        super().step(board, name)

    def climbed_rungs(self) -> list[str]:
        return [step for step, _board, _image in self.steps if step in WITH_BASE]


@pytest.mark.parametrize(
    ("mends", "climbed"),
    [
        ("power cycle", ["power cycle"]),
        ("hub cycle", ["power cycle", "hub cycle"]),
        ("erase and re-flash", ["power cycle", "hub cycle", "erase and re-flash"]),
    ],
)
def test_a_rung_is_climbed_only_where_the_one_before_failed(mends: str, climbed: list[str]) -> None:
    """The rig hung: what brings the board back is written down, and it measures all of its cases."""
    rig = HangingRig(mends=mends)
    run(plan_of(V1, V2), rig)
    assert rig.climbed_rungs() == climbed
    assert not rig.found(Fault)
    assert len(rig.found(RunRecord)) == 2 * len(CASES)
    (recovery,) = rig.found(Recovery)
    assert (recovery.board, recovery.by, recovery.during) == (V1.id, mends, CASES[1].case_id)
    assert recovery.tried == ("reset", *climbed)
    flashed = [board for step, board, _image in rig.steps if step == "flash"]
    assert flashed.count(V1.id) == (2 if mends == "erase and re-flash" else 1)


@pytest.mark.parametrize("in_use", [True, False])
def test_a_board_that_a_reset_brings_back_was_hung_by_its_firmware(in_use: bool) -> None:
    """Exit 1, no rung beyond the reset; the other board measures on. Of one that had not answered before
    nobody knows what kept it silent: it measures on, and nobody is blamed."""
    rig = HangingRig(mends="reset", in_use=in_use)
    run(plan_of(V1, V2), rig)
    assert rig.climbed_rungs() == []
    faults = [(fault.owner, fault.exit_code, fault.board, fault.case_id) for fault in rig.found(Fault)]
    assert faults == [("firmware", 1, V1.id, CASES[1].case_id)] * in_use
    assert all("hung: not a byte came. " in fault.sentence for fault in rig.found(Fault))
    assert len(rig.found(RunRecord)) == (1 if in_use else len(CASES)) + len(CASES)


def test_a_board_that_nothing_brings_back_is_the_rigs() -> None:
    """The first fault's sentence, with all that was tried; the other board measures all of its cases."""
    rig = HangingRig()
    run(plan_of(V1, V2), rig)
    (fault,) = rig.found(Fault)
    assert (fault.owner, fault.board) == ("rig", V1.id)
    for word in ("not a byte came. ", "; ".join(ALL)):
        assert word in fault.sentence
    (recovery,) = rig.found(Recovery)
    assert (recovery.by, recovery.tried) == ("", ALL)
    assert len(rig.found(RunRecord)) == 1 + len(CASES)


@pytest.mark.parametrize("role", ["candidate", "base"])
def test_a_board_that_answers_with_the_base_image_alone_is_sound(role: str) -> None:
    """Whichever of the two fell silent, the candidate's boot loader lay under both: it is at fault, exit 1,
    and nothing more of the board is measured."""
    rig = FakeRig({(V1.id, f"boot {role}"): NoAnswerError("no boot.")}, ladder=ALL)
    rig.on_climb = lambda _board, rung: rig.faults.clear() if rung == "base image" else None
    run(plan_of(V1), rig, BASE)
    (fault,) = rig.found(Fault)
    assert (fault.owner, fault.exit_code, fault.board) == ("firmware", 1, V1.id)
    for word in (f"({'; '.join(ALL)})", "answers with the base image"):
        assert word in fault.sentence
    (recovery,) = rig.found(Recovery)
    assert (recovery.by, recovery.tried) == ("base image", WITH_BASE)
    assert [role for _board, role in rig.roles][-1] == "base"


@pytest.mark.parametrize("error", [NoAnswerError("not a byte."), FirmwareError("a panic.")])
def test_a_board_that_fails_with_the_base_image_too_is_the_rigs(error: HilError) -> None:
    """Silent or panicking: what was merged before does not run on it either."""
    rig = FakeRig({(V1.id, "boot candidate"): NoAnswerError("no boot.")}, ladder=ALL)
    rig.on_climb = lambda board, rung: (
        rig.faults.update({(board.id, "boot base"): error}) if rung == "base image" else None
    )
    run(plan_of(V1), rig, BASE)
    (fault,) = rig.found(Fault)
    assert fault.owner == "rig"
    assert f"; base image failed ({error.sentence.rstrip('.')})" in fault.sentence
    (recovery,) = rig.found(Recovery)
    assert (recovery.by, recovery.tried) == ("", WITH_BASE)


def test_the_base_tells_nothing_where_the_candidate_was_not_written_again() -> None:
    """A port that comes and goes must not be taken for the firmware's fault."""
    rig = FakeRig({(V1.id, "boot candidate"): NoAnswerError("no boot.")}, ladder=ALL)
    rig.faults[V1.id, "erase and re-flash"] = NoAnswerError("no port.")
    run(plan_of(V1), rig, BASE)
    (fault,) = rig.found(Fault)
    assert fault.owner == "rig"
    assert "failed (no port)" in fault.sentence
    assert "base image" not in [step for step, _board, _image in rig.steps]


def test_a_switch_that_fails_is_named_and_the_next_rung_climbed() -> None:
    """It is no reason to leave the board: what is left may help, and the sentence has the switch's."""
    rig = HangingRig(ladder=ALL[:3])
    rig.faults = {(V1.id, "power cycle"): RigError("no hub."), (V1.id, "hub cycle"): RigError("x.")}
    run(plan_of(V1), rig)
    (fault,) = rig.found(Fault)
    for word in ("power cycle failed (no hub)", "hub cycle failed (x)"):
        assert word in fault.sentence


def test_a_board_that_answers_with_another_fault_is_back() -> None:
    """The ladder ends there, and that fault is told as ever."""
    rig = HangingRig(mends="power cycle")
    rig.on_climb = lambda board, rung: (
        rig.climbed(board, rung),
        rig.faults.update({(V1.id, "boot"): ConfigError("wrong protocol.")}),
    )
    run(plan_of(V1), rig)
    (fault,) = rig.found(Fault)
    assert (fault.owner, fault.sentence) == ("configuration", "wrong protocol.")
    assert [entry.by for entry in rig.found(Recovery)] == ["power cycle"]


def test_what_falls_silent_again_and_again_is_given_up() -> None:
    """So often a board is brought back, and no more: its fault stands."""
    rig = HangingRig(mends="power cycle")

    def hang_again(board: Board, case: Case) -> None:
        rig.hangs = True
        rig.measure(board, case)

    rig.on_measure = hang_again
    run(plan_of(V1), rig)
    assert len(rig.found(Recovery)) == RECOVERIES_MAX
    assert len(rig.found(Fault)) == 1


def test_a_board_that_cannot_be_flashed_is_helped_by_its_supply_alone() -> None:
    """A reset was tried by esptool, and what cannot be written cannot be erased."""
    rig = FakeRig({(V1.id, "flash"): NoAnswerError("no sync.")}, ladder=ALL)
    rig.on_climb = lambda board, rung: rig.faults.pop((board.id, "flash")) if rung == "hub cycle" else None
    run(plan_of(V1), rig)
    assert [step for step, _board, _image in rig.steps][:4] == ["flash", "power cycle", "flash", "hub cycle"]
    assert not rig.found(Fault)


def test_another_fault_of_the_rig_is_not_what_the_ladder_is_for() -> None:
    """A broker that died is not mended by a board's supply."""
    for error in (RigError("the broker died."), ConfigError("wrong.")):
        rig = FakeRig({(V1.id, CASES[0].case_id): error}, ladder=ALL)
        run(plan_of(V1), rig)
        assert not rig.found(Recovery)


SUITES = """\
suites:
  quick:
    - {qos: [0, 1], count: 300, warmup: 0, interval_us: 10000, payload_bytes: 128}

"""
LADDER_DEADLINE_S = 300.0  # silence is given up after seconds, board by board; only a failure waits so
FAULTS = {
    "b1": [("hang", "reset")],
    "b2": [("hang", "power")],
    "b3": [("corrupt_image", "bootloader"), ("hang", "reset")],
    "b4": [("disconnect", "now")],
}


@pytest.mark.slow
@pytest.mark.heavy
def test_boards_that_hang_in_a_run_are_brought_back(new_lab: Callable[..., Lab]) -> None:
    """Virtual boards hang, each in a way that only one thing mends: the run's own ladder finds it.

    What a reset mends is the firmware's fault, exit 1, unless it was the cable; the others measure all.
    """
    lab = new_lab(4)
    write_suites(lab.folder / "thresholds", {"publish": SUITES})
    running = lab.start("--suite", "quick")
    try:
        left = dict(FAULTS)
        while left:
            pattern = rf"({'|'.join(left)}) \[0/2\b[^]]*\] measuring: publish"
            wait_for(lambda p=pattern: bool(re.search(p, running.said())), running.said, LADDER_DEADLINE_S)
            board = re.search(pattern, running.said())[1]  # type: ignore[index]
            control = BoardControl(lab.out / "virtual" / "lab" / "b1" / f"{board}.sock")
            for fault in left.pop(board):
                control.fault(*fault)
        assert running.process.wait(LADDER_DEADLINE_S) == 1, running.said()
    finally:
        running.close()
    entries = lab.entries()
    mended = {entry["board"]: entry["by"] for entry in of_type(entries, "recovery")}
    assert mended == {"b1": "reset", "b2": "power cycle", "b3": "erase and re-flash", "b4": "reset"}
    (found,) = of_type(entries, "fault")
    assert (found["board"], found["owner"]) == ("b1", "firmware")
    measured = Counter(entry["board"] for entry in of_type(entries, "record"))
    assert measured == {"b2": 2, "b3": 2, "b4": 2}


@pytest.mark.slow
@pytest.mark.heavy
def test_a_build_that_does_not_boot_is_told_from_a_broken_board(new_lab: Callable[..., Lab]) -> None:
    """Its boot loader is none: a virtual board is as silent with it as a broken board, and nothing brings it
    back. The base image answers on it: exit 1, and the board stays in service, although its rack keeps out
    what nothing brings back."""
    lab = new_lab(1)
    base = lab.firmware
    assert base
    lab.rack.write_text(f"quarantine_after: 1\n{lab.rack.read_text()}")
    build = shutil.copytree(base, lab.folder / "build")
    (build / "bootloader" / "bootloader.bin").write_bytes(b"\xff" * 4096)
    lab.firmware = build
    running = lab.start("--suite", "quick", "--base", str(base))
    try:  # each boot is given up after a minute
        assert running.process.wait(2 * LADDER_DEADLINE_S) == 1, running.said()
    finally:
        running.close()
    entries = lab.entries()
    (fault,) = of_type(entries, "fault")
    assert fault["owner"] == "firmware"
    (recovery,) = of_type(entries, "recovery")
    assert recovery["tried"] == ["reset", "power cycle", "erase and re-flash", "base image"]
    assert recovery["by"] == "base image"
    status = lab.hil("rack", "status", "--rack", str(lab.rack), "--out", str(lab.out)).stdout
    assert "b1" in status
    assert "quarantined" not in status
