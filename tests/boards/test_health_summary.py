# SPDX-License-Identifier: Apache-2.0
"""From a line a run to each rack's health: failures, recoveries, use, flakes, false regressions."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hil.base.errors import ConfigError
from hil.boards.health import BoardHealth, RackHealth, RunHealth, summarise
from tests.boards.health_runs import COMPARED, KEPT_OUT, NOW, SERIES, at, run_at

HOUR_S = 3600.0


def rack_of(*runs: RunHealth, now: str = NOW) -> RackHealth:
    (rack,) = summarise(runs, now_utc=now)
    return rack


def board_of(*runs: RunHealth, now: str = NOW) -> BoardHealth:
    return rack_of(*runs, now=now).boards[0]


def hours(words: Sequence[str]) -> list[RunHealth]:
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


def test_use_is_the_share_of_the_time_since_the_board_was_first_seen() -> None:
    """Ten hours known, in two runs held for an hour and measured for a minute each: 20 %."""
    board = board_of(run_at(0, held_s=HOUR_S), run_at(5, held_s=HOUR_S), now=at(10))
    assert (board.held_s, board.measured_s, board.utilisation_ratio) == (2 * HOUR_S, 120.0, 0.2)
    known_before = board_of(run_at(0), run_at(24 * 40, held_s=HOUR_S), now=at(24 * 40 + 1))
    assert known_before.utilisation_ratio == pytest.approx(1 / (24 * 30))


def test_durations_add_up_alike_on_every_python() -> None:
    """The sum is the exact one, rounded: sum() of Python 3.11 loses digits that 3.12's keeps."""
    board = board_of(*(run_at(hour, held_s=0.1) for hour in range(10)))
    assert board.held_s == 1.0


def test_what_a_run_did_not_hold_is_not_counted_as_held() -> None:
    """A board in quarantine was not held, and of a killed run nobody knows how long it held its boards."""
    board = board_of(run_at(0, "quarantine"), run_at(1, held_s=None), run_at(2), now=at(10))
    assert board.held_s == 600.0
    rack = rack_of(run_at(0, lease_wait_s=None), run_at(1, lease_wait_s=7.0))
    assert rack.lease_waits_s == (7.0,)


def test_racks_are_reckoned_apart() -> None:
    """Boards of one name in two racks are two boards; the racks are sorted."""
    found = summarise([run_at(0, "rig"), run_at(1, rack="attic")], now_utc=NOW)
    assert [(rack.rack, rack.boards[0].failure_ratio) for rack in found] == [("attic", 0), ("lab", 1)]


def test_a_run_that_is_there_twice_counts_once() -> None:
    """The same run from a file and from its folder is one run."""
    assert rack_of(run_at(0), run_at(0)).runs == 1


def test_quarantine_is_what_the_latest_line_says_unless_the_lab_is_asked() -> None:
    """Without the lab's own list the latest line tells; the list wins, also where it is empty."""
    runs = hours(["ok", "quarantine"])
    assert board_of(*runs).quarantine == KEPT_OUT
    assert board_of(*runs, run_at(2)).quarantine is None
    assert summarise(runs, now_utc=NOW, quarantine={})[0].boards[0].quarantine is None
    asked = summarise(hours(["ok"]), now_utc=NOW, quarantine={"lab/e1": KEPT_OUT, "attic/e1": KEPT_OUT})
    assert asked[0].boards[0].quarantine == KEPT_OUT


def test_a_flake_blocked_and_then_passed_with_the_same_firmware() -> None:
    """Blocked, then passed by the same image on the same board: a flake, one of the two judged again."""
    rack = rack_of(run_at(0, passed=(SERIES,)), run_at(1, blocked=(SERIES,)), run_at(2, passed=(SERIES,)))
    assert (rack.flakes, rack.judged_again, rack.flake_ratio) == (1, 2, 0.5)


def test_a_series_that_blocks_again_is_no_flake() -> None:
    """The next run decides, not some later one."""
    rack = rack_of(run_at(0, blocked=(SERIES,)), run_at(1, blocked=(SERIES,)))
    assert (rack.flakes, rack.judged_again, rack.flake_ratio) == (0, 1, 0.0)


@pytest.mark.parametrize(
    "second",
    [
        {"firmware": {"esp32": "bb"}},
        {"firmware": {}},
        {"profile": "hotspot"},
        {"firmware": {"esp32": "aa", "esp32+tick100": "dd"}},
    ],
)
def test_another_firmware_or_air_judges_nothing_again(second: dict[str, object]) -> None:
    """A fix is no flake: another image, an unknown one, a changed variant or another air tells nothing."""
    firmware = {"esp32": "aa", "esp32+tick100": "cc"}
    rack = rack_of(
        run_at(0, blocked=(SERIES,), firmware=firmware),
        run_at(1, passed=(SERIES,), **{"firmware": firmware, **second}),
    )
    assert (rack.flakes, rack.judged_again, rack.flake_ratio) == (0, 0, None)


def test_a_run_of_another_firmware_between_does_not_hide_a_flake() -> None:
    """The next run is the next of the same firmware; images of other targets do not matter."""
    rack = rack_of(
        run_at(0, blocked=(SERIES,)),
        run_at(1, blocked=(SERIES,), firmware={"esp32": "bb"}),
        run_at(2, passed=(SERIES,), firmware={"esp32": "aa", "esp32c3": "ff"}),
    )
    assert (rack.flakes, rack.judged_again) == (1, 1)


def test_a_blocked_comparison_that_the_same_images_pass_next_is_false() -> None:
    """Two comparisons of the same two images, the first blocked: one checked, and it was wrong."""
    rack = rack_of(
        run_at(0, compared_blocked=(COMPARED,), base={"esp32": "00"}),
        run_at(1, compared_passed=(COMPARED,), base={"esp32": "00"}),
    )
    assert (rack.false_regressions, rack.comparisons_checked, rack.false_regression_ratio) == (1, 1, 1.0)


def test_a_comparison_with_another_base_checks_nothing() -> None:
    """Another base, or another candidate, is another question."""
    rack = rack_of(
        run_at(0, compared_blocked=(COMPARED,), base={"esp32": "00"}),
        run_at(1, compared_passed=(COMPARED,), base={"esp32": "11"}),
        run_at(2, compared_passed=(COMPARED,), base={"esp32": "00"}, firmware={"esp32": "bb"}),
    )
    assert (rack.false_regressions, rack.comparisons_checked, rack.false_regression_ratio) == (0, 0, None)


def test_an_image_compared_with_itself_checks_itself() -> None:
    """What blocks between an image and itself is false, what passes is right; no second run is needed."""
    same = {"base": {"esp32": "aa"}}
    rack = rack_of(
        run_at(0, compared_blocked=(COMPARED,), **same), run_at(1, compared_passed=(COMPARED,), **same)
    )
    assert (rack.false_regressions, rack.comparisons_checked, rack.false_regression_ratio) == (1, 2, 0.5)


def test_a_moment_that_is_none_is_refused() -> None:
    """A wrong ``now_utc`` is an error that names it."""
    with pytest.raises(ConfigError, match="'tomorrow' is no moment"):
        summarise([], now_utc="tomorrow")
