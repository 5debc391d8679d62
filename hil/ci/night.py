# SPDX-License-Identifier: Apache-2.0
"""What a night measures on the virtual rack: on which boards, and which benches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hil.base.chips import CHIPS
from hil.base.errors import ConfigError
from hil.boards.rack import Board, load_rack
from hil.ci.event import VIRTUAL_RACK
from hil.run.plan import make_plan
from hil.thresholds import load_project
from hil.thresholds.loader import FOLDER


@dataclass(frozen=True)
class VirtualNight:
    """The boards that measure, and the benches, of which each has a leg."""

    boards: tuple[str, ...] = ()
    benches: tuple[str, ...] = ()


def virtual_night(repository: Path, suite: str) -> VirtualNight:
    """Return what measures a suite at night; nothing where a run of it will say what is wrong.

    A board of each number of cores: the others would measure the same again, as chips of the virtual rack
    differ in names alone.
    """
    try:
        rack = load_rack(repository / VIRTUAL_RACK)
        by_cores: dict[int, Board] = {}
        for board in rack.boards:
            by_cores.setdefault(CHIPS[board.chip].cores, board)
        boards = tuple(board.id for board in by_cores.values())
        plan = make_plan(rack, load_project(repository / FOLDER), selection=suite, board_ids=boards)
    except ConfigError:
        return VirtualNight()
    benches = dict.fromkeys(case.bench for board in plan.boards for case in board.cases)
    return VirtualNight(boards, tuple(benches))
