# SPDX-License-Identifier: Apache-2.0
"""The rhealstone bench as the host sees it: the real firmware on the host build, driven over its console."""

from __future__ import annotations

import pytest

from tests.firmware.kernel_rig import OK, VOID, Board

pytestmark = pytest.mark.slow

OPERATIONS = 6
MEAN = OPERATIONS
OF_ROUND = OPERATIONS + 1


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
