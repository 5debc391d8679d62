# SPDX-License-Identifier: Apache-2.0
"""What a board could not measure goes to others of its target, where a run spreads its cases.

The planner's dispatcher hands it out: to whoever is through with what is its own, so that nobody is held up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from hil.model import Case, NotRun
from hil.run.case_results import CaseResults
from hil.run.plan import BoardPlan, Plan, Stage
from hil.run.plan.deadline import BOOT_S, FLASH_S, expected_s
from hil.run.plan.schedule import Dispatcher, Item, Seat


@dataclass(frozen=True)
class Lot:
    """Cases of one image that ``board`` could not measure, and why."""

    board: str
    stage: Stage
    why: str

    @property
    def cases(self) -> tuple[Case, ...]:
        return self.stage.boots[0]


class HandOver:
    """Hands lots from boards that fail to boards that are through. Threads share it.

    ``results`` tell what became of each case, and are told who has it.
    """

    def __init__(self, plan: Plan, results: CaseResults, run_id: str) -> None:
        self._able = dict(plan.takers)  # who else can measure a case that a board has
        self._results = results
        self._run_id = run_id
        self._plans = {one.board.id: one for one in plan.boards}
        self._lock = threading.Lock()
        self._cases = {board: list(one.cases) for board, one in self._plans.items()}
        self._stages = {board: list(one.stages) for board, one in self._plans.items()}
        self._lots: dict[str, Lot] = {}  # which nobody has taken, by their items' ids
        self._numbers = 0
        present = [one for one in plan.boards if not one.quarantine]
        seats = [Seat(one.board.id, "", _last_image(one)) for one in present]
        begun = {one.board.id: self._own(one) for one in present}
        self._dispatcher = Dispatcher([], seats, flash_s=FLASH_S, begun=begun)

    def cases_of(self, board: str) -> tuple[Case, ...]:
        """Return what a board measures: its own, and what it took over."""
        with self._lock:
            return tuple(self._cases[board])

    def waiting(self) -> list[Lot]:
        """Return what nobody has taken over so far."""
        with self._lock:
            return list(self._lots.values())

    def next(self, board: str, check: Callable[[], None]) -> Lot | None:
        """Return what a board that is through takes over; None when nothing can come any more.

        It is waited for; ``check`` is called meanwhile and may raise. Raises RigError (the disk).
        """
        self._dispatcher.done(board)
        item = self._dispatcher.wait(board, check)
        if item is None:
            return None
        with self._lock:
            lot = self._lots.pop(item.id)
            self._cases[board] += lot.cases
            self._stages[board].append(lot.stage)
            for case in lot.cases:
                self._able[board, case.case_id] = self._able[lot.board, case.case_id] - {board}
        self._results.hand_over(lot.board, lot.cases, board)
        for case in lot.cases:
            reason = f"board {board} takes it over: {lot.why}"
            self._results.put(
                lot.board, NotRun(self._run_id, lot.board, case.case_id, reason, "handed-over", board)
            )
        return lot

    def leave(self, board: str, why: str, *, stays: str = "") -> list[Lot]:
        """Take a board out that failed: what it was to measure goes to others.

        ``stays`` is the id of a case that is not handed over. Return what nobody can measure any more, of
        this board and of those that left before.
        """
        lost: list[Lot] = []
        items: list[Item] = []
        with self._lock:
            for lot, takers in self._left(board, why, stays):
                if not takers:
                    lost.append(_final(lot) if self._able else lot)
                    continue
                for part in _divided(lot, len(takers)):
                    self._numbers += 1
                    name = f"lot {self._numbers}"
                    items.append(Item(name, str(part.stage.image), _seconds([part.stage]), takers))
                    self._lots[name] = part
                self._results.hand_over(board, lot.cases)
        stranded = self._dispatcher.drop(board, items)
        with self._lock:
            alone = [self._lots.pop(item.id) for item in stranded]
        return lost + [_final(lot) for lot in alone]

    def end(self, board: str) -> None:
        """Exclude a board from taking cases over, for whatever reason."""
        self._dispatcher.drop(board, [])

    def _left(self, board: str, why: str, stays: str) -> Iterator[tuple[Lot, frozenset[str]]]:
        """Yield what a board has not measured: image by image, and by who else can."""
        for stage in self._stages[board]:
            groups: dict[frozenset[str], list[Case]] = {}
            for case in self._results.open_cases(board, stage.boots[0]):
                able = self._able.get((board, case.case_id), frozenset())
                groups.setdefault(able if case.case_id != stays else frozenset(), []).append(case)
            for takers, cases in groups.items():
                yield Lot(board, replace(stage, boots=(tuple(cases),) * len(stage.boots)), why), takers

    def _own(self, plan: BoardPlan) -> Item:
        """Return a board's own plan as what it is at: others wait for it, as it may fail."""
        able = (self._able.get((plan.board.id, case.case_id), frozenset()) for case in plan.cases)
        boards = frozenset({plan.board.id}).union(*able)
        return Item(f"plan of {plan.board.id}", _last_image(plan), _seconds(plan.stages), boards)


def _final(lot: Lot) -> Lot:
    return replace(lot, why=f"{lot.why} No other board is left that could.")


def _last_image(plan: BoardPlan) -> str:
    """Return what is on a board when it is through."""
    return str(plan.stages[-1].image) if plan.stages else ""


def _seconds(stages: Sequence[Stage]) -> float:
    return sum(BOOT_S + sum(map(expected_s, boot)) for stage in stages for boot in stage.boots)


def _divided(lot: Lot, parts: int) -> list[Lot]:
    """Return a lot in parts that take alike: the longest case first, to the part that is shortest so far."""
    found: list[list[Case]] = [[] for _ in range(min(parts, len(lot.cases)))]
    for case in sorted(lot.cases, key=expected_s, reverse=True):
        min(found, key=lambda part: sum(map(expected_s, part))).append(case)
    boots = len(lot.stage.boots)
    return [replace(lot, stage=replace(lot.stage, boots=(tuple(part),) * boots)) for part in found]
