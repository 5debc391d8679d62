# SPDX-License-Identifier: Apache-2.0
"""``hil run --at-most N``: some boards of a rack, whichever are free, for runs that share it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from hil.base.errors import ConfigError
from hil.boards.health.quarantine import folder_of, read_quarantine
from hil.boards.lease import hand_over_boards, lock_dir
from hil.boards.rack import Board, Rack, load_rack
from hil.boards.rack_queue import take_boards


def take_some(rack_file: Path, out: Path, at_most: int, options: Mapping[str, Any]) -> list[str]:
    """Lock at most so many boards of those that the options ask for, for this process; return their ids.

    All of them where each that may be is in quarantine: the run says so. Raises ConfigError where they have
    several targets; RigError where so many are not free in time.
    """
    rack = load_rack(rack_file)
    asked = rack.select(options["boards"] or (), options["target"], options["labels"])
    boards = [board for board in asked if board.id not in read_quarantine(folder_of(rack, out))]
    if not boards:
        return [board.id for board in asked]
    _check_targets(rack, boards)
    files = take_boards(
        lock_dir(rack, out),
        [board.id for board in boards],
        count := min(at_most, len(boards)),
        expected_s=_expected(options, count),
        wait_s=options["wait"],
        on_wait=lambda sentence: click.echo(f"Waiting: {sentence}"),
    )
    os.environ.update(hand_over_boards(files))
    return [board.id for board in boards if board.id in files]


def _check_targets(rack: Rack, boards: list[Board]) -> None:
    targets = sorted({board.target for board in boards})
    if len(targets) > 1:
        raise ConfigError(
            f"--at-most takes boards of one target, and rack {rack.name} has {', '.join(targets)}.",
            next_step=f"name one: --target {targets[0]}.",
        )


def _expected(options: Mapping[str, Any], count: int) -> Callable[[], float]:
    """Return what says how long the run takes at most, about. It imports the gate, which takes a while."""

    def expected_s() -> float:
        from hil.gate.compare.looks import schedule
        from hil.run.campaign import DEFAULT_BUDGET_MIN
        from hil.run.plan.deadline import affordable, expected_s, look_s
        from hil.run.plan.selection import select_cases
        from hil.thresholds import load_project
        from hil.thresholds.types import Policy

        cases = select_cases(load_project(options["thresholds"]), options["suite"])
        measuring_s = [sum(map(expected_s, cases))] * count
        if options["base"] is None and not options["unchanged"]:
            return look_s(options["boots"] or 1, measuring_s)
        budget_s = 60.0 * (options["budget"] or DEFAULT_BUDGET_MIN)
        looks = affordable(schedule(Policy().max_boots), measuring_s, budget_s)
        return look_s(sum(looks[-1]), measuring_s)

    return expected_s
