# SPDX-License-Identifier: Apache-2.0
"""The rhealstone bench as the host sees it: the real firmware on the host build, driven over its console."""

from __future__ import annotations

import pytest

from tests.firmware.kernel_rig import NOT_DONE, OK, VOID, Board, measured

pytestmark = pytest.mark.slow

OPERATIONS = 6
MEAN = OPERATIONS
OF_ROUND = OPERATIONS + 1


def test_a_round_is_each_operation_once_and_their_mean(board: Board) -> None:
    """Rows come round by round, the warm-up's first; all six are done, and deadlocks are broken."""
    series = board.run("rhealstone", count=20, warmup=3)
    assert (series.rows, series.warmup_rows) == (23 * OF_ROUND, 3 * OF_ROUND)
    assert series.columns["operation"] == tuple(range(OF_ROUND)) * 23
    assert NOT_DONE not in series.columns["outcome"]
    for operation in range(OF_ROUND):
        assert all(row["corrected_ns"] > 0 for row in measured(series, {"operation": operation}))


def test_the_figure_is_one_by_the_mean_of_the_six(board: Board) -> None:
    """Of each round the mean, void where one of the six is; how often it fits a second is the Rhealstone."""
    columns = board.run_until_void("rhealstone", count=1500, void_late_us=1000).columns
    for first in range(0, len(columns["operation"]), OF_ROUND):
        six, mean = slice(first, first + OPERATIONS), first + OPERATIONS
        assert columns["host_late_us"][mean] == max(columns["host_late_us"][six])
        assert columns["outcome"][mean] == max(columns["outcome"][six])
        if columns["outcome"][mean] == OK:
            assert columns["corrected_ns"][mean] == sum(columns["corrected_ns"][six]) // OPERATIONS
    assert VOID in columns["outcome"][MEAN::OF_ROUND]
    rates = zip(columns["corrected_ns"], columns["per_second_count"], columns["outcome"], strict=True)
    assert all(rate == 10**9 // nanoseconds for nanoseconds, rate, outcome in rates if outcome == OK)


def test_one_core_is_enough(one_core: Board) -> None:
    """All six are of tasks on one core, so a chip with one core has them too."""
    series = one_core.run("rhealstone", count=20)
    assert {row["operation"] for row in measured(series)} == set(range(OF_ROUND))


def test_abort_ends_a_run_soon_and_nothing_is_left_behind(board: Board) -> None:
    """After a run cut short and ten whole ones as much memory is free as after the first."""
    board.check_that_nothing_is_left_behind("rhealstone")
