# SPDX-License-Identifier: Apache-2.0
"""Spreads the cases of a plan: each is measured once a target, on one of its boards, as the planner says.

The same boards and cases are spread alike each time, so that a case's history stays on one board. What a
board in quarantine would measure is given to others; what these measure stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from hil.model import Case
from hil.run.plan.deadline import FLASH_S, expected_s
from hil.run.plan.planning import BoardPlan, Omitted, Plan, image_of
from hil.run.plan.schedule import Item, Seat, simulate


@dataclass(frozen=True)
class _Share:
    """A case of a target; ``able`` are the boards that can measure it, in the plan's order."""

    target: str
    case: Case
    able: tuple[BoardPlan, ...]

    @property
    def id(self) -> str:
        return f"{self.target}/{self.case.case_id}"

    @property
    def names(self) -> frozenset[str]:
        return frozenset(plan.board.id for plan in self.able)


def spread(plan: Plan, *, quarantine: Mapping[str, str]) -> Plan:
    """Return a plan, which was made without quarantine, with each case on one board of each target.

    ``quarantine`` says of each board in quarantine why it measures nothing.
    """
    shares = _shares(plan)
    homes = _homes(shares)
    bereft = [_without(one, quarantine) for one in shares if homes[one.id] in quarantine]
    owners = {**homes, **_homes(bereft)}
    boards = []
    for board in plan.boards:
        mine = [one for one in shares if homes[one.id] == board.board.id or owners[one.id] == board.board.id]
        why = quarantine.get(board.board.id, "")
        kept = set() if why else {one.case.case_id for one in mine if owners[one.id] == board.board.id}
        boots = (tuple(case for case in boot if case.case_id in kept) for boot in board.boots)
        given = [Omitted(one.case, _why_given(board.board.id, owners[one.id], why)) for one in mine if why]
        omitted = (*_impossible(plan, board), *given)
        boards.append(replace(board, boots=tuple(filter(None, boots)), omitted=omitted, quarantine=why))
    takers = {(owners[one.id], one.case.case_id): one.names - {*quarantine, owners[one.id]} for one in shares}
    return replace(plan, boards=tuple(boards), takers=takers)


def _shares(plan: Plan) -> list[_Share]:
    found: dict[tuple[str, str], list[BoardPlan]] = {}
    cases: dict[str, Case] = {}
    for board in plan.boards:
        for case in board.cases:
            cases[case.case_id] = case
            found.setdefault((board.board.target, case.case_id), []).append(board)
    return [_Share(target, cases[case_id], tuple(able)) for (target, case_id), able in found.items()]


def _without(share: _Share, boards: Collection[str]) -> _Share:
    return replace(share, able=tuple(plan for plan in share.able if plan.board.id not in boards))


def _homes(shares: Iterable[_Share]) -> dict[str, str]:
    """Return the board that measures each share, without shares that no board can measure.

    All are to have alike much, whoever of them has the air: so turns on it are left out. Each board is
    flashed once, beside the others, with the image that most of the work needs; another flash costs time.
    """
    items = [_item(one) for one in shares if one.able]
    boards = sorted(frozenset[str]().union(*(item.boards for item in items)))
    seats = [Seat(board, "", _main_image(items, board)) for board in boards]
    return {item: board for item, board, _at in simulate(items, seats, flash_s=FLASH_S).begins}


def _main_image(items: Iterable[Item], board: str) -> str:
    needed: dict[str, float] = {}
    for item in items:
        if board in item.boards:
            needed[item.firmware] = needed.get(item.firmware, 0.0) + item.seconds
    return max(needed, key=lambda image: needed[image])


def _item(share: _Share) -> Item:
    plan = share.able[0]
    image = image_of(plan.board.firmware_target, share.case, plan.probes)
    seconds = plan.boots_of(share.case) * expected_s(share.case)
    return Item(share.id, str(image), seconds, share.names)


def _impossible(plan: Plan, board: BoardPlan) -> Iterable[Omitted]:
    """Yield what no board of the target can measure: the first one says why."""
    alike = [other for other in plan.boards if other.board.target == board.board.target]
    if alike[0] is not board:
        return
    possible = {case.case_id for other in alike for case in other.cases}
    yield from (one for one in board.omitted if one.case.case_id not in possible)


def _why_given(board: str, to: str, why: str) -> str:
    return why if to == board else f"left to board {to}, as board {board} is {why}"
