# SPDX-License-Identifier: Apache-2.0
"""What a night measures beside the head, on which virtual boards, and how its runs enter the history."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hil.base.chips import CHIPS
from hil.base.errors import ConfigError
from hil.boards.rack import Board, load_rack
from hil.ci.event import VIRTUAL_RACK
from hil.history.from_run import add_run
from hil.history.nightly.reference import load_references, tonight
from hil.run.plan import make_plan
from hil.store import RunDirectory, read_run
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


LEG = "night-"  # what the names of legs begin with whose runs enter the history


def references_tonight(thresholds: Path) -> tuple[str, ...]:
    """Return the commits to measure beside the head. Raises ConfigError where the file of them is wrong."""
    night = tonight(datetime.datetime.now(tz=datetime.UTC))
    return tuple(reference.commit for reference in load_references(thresholds).of(night))


def add_runs(legs: Path, history: Path) -> Iterator[str]:
    """Append to a history what the legs of a night left below ``legs``; say what became of each.

    Raises RigError where the disk does not take it.
    """
    for leg in sorted(legs.glob(f"{LEG}*")):
        runs = RunDirectory.list(leg)
        if not runs:
            yield f"{leg.name}: no run"
        for run in runs:
            try:
                added = add_run(read_run(run.path), history)
                yield f"{leg.name}: {added.values} boot values in {added.path}"
            except ConfigError as error:
                yield f"{leg.name}: left out: {error}"
