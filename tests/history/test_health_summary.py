# SPDX-License-Identifier: Apache-2.0
"""From a line a run to each rack's health: failures by owner, and recoveries."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hil.base.errors import ConfigError
from hil.history.health.summary import summarise
from hil.history.health.types import BoardHealth, RackHealth
from hil.history.summary import Summary
from tests.history.health_runs import KEPT_OUT, NOW, at, run_at

HOUR_S = 3600.0


def rack_of(*runs: Summary, now: str = NOW) -> RackHealth:
    (rack,) = summarise(runs, now_utc=now)
    return rack


def board_of(*runs: Summary, now: str = NOW) -> BoardHealth:
    return rack_of(*runs, now=now).boards[0]


def hours(words: Sequence[str]) -> list[Summary]:
    """Return a run an hour, in which this became of the one board."""
    return [run_at(hour, word) for hour, word in enumerate(words)]


def test_a_boards_failures_are_the_rigs() -> None:
    """A run counts as failed where the rig failed on the board: a panic is no failure of the rack."""
    board = board_of(*hours(["ok", "panic", "rig", "both", "ok"]))
    assert (board.runs, board.faulted_runs, board.failure_ratio) == (5, 2, 0.4)
    assert board.last_fault == "its port vanished"
    only_panics = board_of(*hours(["panic", "panic", "panic"]))
    assert (only_panics.failure_ratio, only_panics.faults_in_a_row, only_panics.down_since_utc) == (0, 0, "")


def test_faults_of_a_rack_are_counted_by_owner() -> None:
    """Faults of boards and those of no board in particular are counted, each by whose it is."""
    rack = rack_of(run_at(0, "both", "panic"), run_at(1, "ok", "rig", faults={"rig": 1, "configuration": 1}))
    assert rack.infrastructure_faults == {"configuration": 1, "firmware": 2, "rig": 4}
    assert rack.failed_runs == {"configuration": 1, "firmware": 1, "rig": 2}
    assert rack.failure_ratio == 1.0


def test_a_recovery_lasts_from_the_first_failed_run_to_the_next_sound_one() -> None:
    """Two recoveries of two hours and of one: their mean is an hour and a half."""
    board = board_of(*hours(["ok", "rig", "rig", "ok", "rig", "ok"]))
    assert (board.recoveries, board.mean_time_to_recovery_s) == (2, 1.5 * HOUR_S)
    assert (board.down_since_utc, board.faults_in_a_row) == ("", 0)


def test_an_outage_that_lasts_is_in_no_mean() -> None:
    """A board that is still down has a start of it and its runs in a row; the mean is of what has ended."""
    board = board_of(*hours(["rig", "ok", "rig", "rig", "rig"]))
    assert (board.recoveries, board.mean_time_to_recovery_s) == (1, HOUR_S)
    assert (board.down_since_utc, board.faults_in_a_row) == (at(2), 3)
    never = board_of(*hours(["rig"]))
    assert (never.recoveries, never.mean_time_to_recovery_s, never.down_since_utc) == (0, None, at(0))


def test_runs_without_the_board_neither_mend_nor_break_it() -> None:
    """What it took no part in is no run of it, and an outage goes on across it; a panic is a sound run."""
    board = board_of(*hours(["rig", "absent", "quarantine", "rig", "panic"]))
    assert (board.runs, board.faulted_runs) == (3, 2)
    assert (board.recoveries, board.mean_time_to_recovery_s) == (1, 4 * HOUR_S)
    absent = board_of(*hours(["absent"]))
    assert (absent.runs, absent.failure_ratio) == (0, None)


def test_the_window_ends_now_and_begins_days_before() -> None:
    """Runs before it and after it are not counted, but an outage that began before has its whole length."""
    runs = [run_at(0, "rig"), run_at(1, "rig"), run_at(26, "ok"), run_at(40, "rig")]
    (rack,) = summarise(runs, now_utc=at(30), days=1)
    (board,) = rack.boards
    assert (rack.runs, board.runs, board.faulted_runs) == (1, 1, 0)
    assert (board.recoveries, board.mean_time_to_recovery_s) == (1, 26 * HOUR_S)
    assert summarise(runs, now_utc=at(60), days=1)[0].boards[0].down_since_utc == at(40)
    assert summarise(runs[:2], now_utc=at(30), days=1) == ()


def test_racks_are_reckoned_apart() -> None:
    """Boards of one name in two racks are two boards; the racks are sorted."""
    found = summarise([run_at(0, "rig"), run_at(1, rack="attic")], now_utc=NOW)
    assert [(rack.rack, rack.boards[0].failure_ratio) for rack in found] == [("attic", 0), ("lab", 1)]


def test_quarantine_is_what_the_latest_line_says_unless_the_lab_is_asked() -> None:
    """Without the lab's own list the latest line tells; the list wins, also where it is empty."""
    runs = hours(["ok", "quarantine"])
    assert board_of(*runs).quarantine == KEPT_OUT
    assert board_of(*runs, run_at(2)).quarantine is None
    assert summarise(runs, now_utc=NOW, quarantine={})[0].boards[0].quarantine is None
    asked = summarise(hours(["ok"]), now_utc=NOW, quarantine={"lab/e1": KEPT_OUT, "attic/e1": KEPT_OUT})
    assert asked[0].boards[0].quarantine == KEPT_OUT


def test_a_moment_that_is_none_is_refused() -> None:
    """A wrong ``now_utc`` is an error that names it."""
    with pytest.raises(ConfigError, match="'tomorrow' is not a time"):
        summarise([], now_utc="tomorrow")
