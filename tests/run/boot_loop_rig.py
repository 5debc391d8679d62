# SPDX-License-Identifier: Apache-2.0
"""Boards in memory for the boot loop: they behave, fail and wait as a test tells them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hil.base.errors import HilError
from hil.boards.firmware.build_folder import Image
from hil.boards.lease import lease_rack
from hil.boards.rack import Board, load_rack
from hil.model import Case, Entry, Role, Rung, RunRecord, Series
from hil.network.peers.companion import Observed
from hil.run.boot_loop import STOP_DEADLINE_S, BootLoop
from hil.run.interfaces import Boot
from hil.run.plan import BoardPlan, Omitted, Plan
from hil.run.rounds import Comparing
from tests.make_records import bench_record

RACK = load_rack(Path(__file__).resolve().parents[2] / "hil" / "racks" / "virtual.yaml")
V1, V2 = RACK.boards[:2]
CASES = tuple(Case("publish", {"qos": qos}) for qos in (0, 1, 2))
WAIT_S = 20.0


def ignore(*_arguments: object) -> None:
    """Whoever does not look."""


def _set_event() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


@dataclass
class FakeRig:
    """Boards in memory: ``faults`` maps (board, case or step) to what is raised there, in one role's boots
    where the role is added to it."""

    faults: dict[tuple[str, str], HilError] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    on_measure: Callable[[Board, Case], None] = ignore
    on_flash: Callable[[Board], object] = ignore
    before_rack: Callable[[], None] = ignore
    before_air: Callable[[], None] = ignore
    ladder: tuple[Rung, ...] = ()  # what the rack can do for a board
    on_climb: Callable[[Board, Rung], object] = ignore
    lock: threading.Lock = field(default_factory=threading.Lock)
    air_is_free: threading.Event = field(default_factory=_set_event)
    companions_stopped: threading.Event = field(default_factory=threading.Event)
    locks: Path | None = None  # where the rack's lock lies, if these boards share one
    steps: list[tuple[str, str, str]] = field(default_factory=list)  # (step, board, image)
    roles: list[tuple[str, Role]] = field(default_factory=list)  # (board, what it was booted into)
    slots: dict[str, int] = field(default_factory=dict)  # the candidate's, board by board

    def step(self, board: Board, name: str) -> None:
        if (board.id, name) in self.faults:
            raise self.faults[board.id, name]

    def prepare(
        self, board: Board, image: Image, role: Role, *, slot: int, alone: bool = False, **_options: object
    ) -> None:
        if alone:
            self.climb(board, "base image")
            return
        self.steps.append(("flash", board.id, f"{image}{f' {role} first' if role != 'candidate' else ''}"))
        self.slots[board.id] = slot
        self.on_flash(board)
        self.step(board, "flash")

    @contextmanager
    def boot(self, board: Board, boot: Boot, **_options: object) -> Iterator[FakeDevice]:
        self.steps.append(("boot", board.id, str(boot.image)))
        self.roles.append((board.id, boot.role))
        self.step(board, "boot")
        self.step(board, f"boot {boot.role}")
        yield FakeDevice(self, board, boot)

    def rungs(self, board: Board) -> tuple[Rung, ...]:  # noqa: ARG002 - alike for all
        return self.ladder

    def cycle_power(self, board: Board, *, hub: bool) -> None:
        self.climb(board, "hub cycle" if hub else "power cycle")

    def erase(self, board: Board, **_options: object) -> None:
        self.climb(board, "erase and re-flash")

    def climb(self, board: Board, rung: Rung) -> None:
        self.steps.append((rung, board.id, ""))
        self.step(board, rung)
        self.on_climb(board, rung)

    def record(self, board: Board, boot: Boot, case: Case, outcome: Observed, started_utc: str) -> RunRecord:
        rig = {"rig": {"slot": self.slots[board.id] ^ (boot.role != "candidate")}}
        own: dict[str, Any] = {"board": board.id, "target": board.target, "started_utc": started_utc}
        own |= {"run_id": "r", "kind": board.kind, "role": boot.role, "boot_index": boot.index}
        return bench_record(case.bench, case.parameters, outcome.series.columns, rig, **own)

    @contextmanager
    def lease_air(self, *, check_stop: Callable[[], None]) -> Iterator[None]:
        self.before_air()
        while not self.air_is_free.wait(0.01):
            check_stop()
        yield

    @contextmanager
    def lease_rack(self, *, alone: bool, check_stop: Callable[[], None]) -> Iterator[None]:
        self.before_rack()
        if self.locks is None:
            yield
            return
        with lease_rack(self.locks, run_id="r", alone=alone, check_stop=check_stop):
            yield

    def stop_companions(self, timeout_s: float) -> None:
        assert 0 < timeout_s < STOP_DEADLINE_S
        self.companions_stopped.set()

    def append(self, entry: Entry) -> None:
        with self.lock:
            self.entries.append(entry)

    def found(self, kind: type[Any]) -> list[Any]:
        return [entry for entry in self.entries if isinstance(entry, kind)]

    def now_utc(self) -> str:
        return "2026-01-01T00:00:00Z"


@dataclass
class FakeDevice:
    rig: FakeRig
    board: Board
    boot: Boot

    def confirm(self) -> None:
        self.rig.step(self.board, "confirm")

    def measure(self, case: Case, **_options: object) -> Observed:
        self.rig.on_measure(self.board, case)
        self.rig.step(self.board, case.case_id)
        self.rig.step(self.board, f"{case.case_id} {self.boot.role}")
        return Observed(Series(case, {"done_us": (1, 2)}, 0, "c", "f", "h", 1), {})


def plan_of(*boards: Board, boots: int = 1, omitted: Sequence[Omitted] = ()) -> Plan:
    return Plan("quick", tuple(BoardPlan(board, (CASES,) * boots, tuple(omitted)) for board in boards))


def run(plan: Plan, rig: FakeRig, comparing: Comparing | None = None) -> BootLoop:
    loop = BootLoop(plan, rig, run_id="r", notify=ignore, comparing=comparing)
    loop.start()
    for board in plan.boards:
        for case in board.cases:
            loop.wait(board.board.id, case)
    loop.stop()
    return loop
