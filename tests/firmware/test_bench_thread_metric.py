# SPDX-License-Identifier: Apache-2.0
"""The thread_metric bench as the host sees it: the real firmware on the host, driven over its console."""

from __future__ import annotations

import pytest

from hil.model import Scalar
from tests.firmware.kernel_rig import Board

pytestmark = [pytest.mark.slow, pytest.mark.needs_real_time]  # whose turn it is, is promised then

WINDOW_MS = 100
TESTS = (
    "basic",
    "cooperative",
    "preemptive",
    "interrupt",
    "interrupt_preemption",
    "message",
    "synchronization",
    "memory",
)
SPREAD_MAX = 2
FAILED, VOID = 1, 2


@pytest.mark.parametrize("test", TESTS)
def test_each_test_counts_in_windows_of_its_own(board: Board, test: str) -> None:
    """Both windows of a row have their length and counted; rate and score follow from what they counted."""
    series = board.run("thread_metric", test=test, window_ms=WINDOW_MS, windows=1, warmup=0)
    assert (series.rows, series.warmup_rows) == (1, 0)
    assert FAILED not in series.columns["outcome"]
    assert series.device["spread_max_count"] == SPREAD_MAX
    for row in range(series.rows):
        cells = {name: column[row] for name, column in series.columns.items()}
        assert cells["window_us"] > WINDOW_MS * 900
        assert cells["spread_count"] <= SPREAD_MAX or cells["outcome"] == VOID
        rate = cells["operations_count"] / cells["window_us"]
        basic_rate = cells["basic_count"] / cells["basic_window_us"]
        assert cells["rate_ops"] == pytest.approx(rate * 1e6, abs=1)
        assert cells["score_count"] == pytest.approx(rate / basic_rate * 1e6, abs=1)


def test_all_of_it_runs_on_the_core_that_is_asked_for(board: Board) -> None:
    """The core is in each row, that of the warm-up too, and a board with two has both."""
    series = board.run(
        "thread_metric", test="preemptive", window_ms=WINDOW_MS, windows=1, warmup=1, task_core="1"
    )
    assert (series.rows, series.warmup_rows) == (2, 1)
    assert set(series.columns["core"]) == {1}
    assert FAILED not in series.columns["outcome"]


def test_one_core_hears_an_abort_although_no_partner_ever_waits(one_core: Board) -> None:
    """The console's task outranks the partners."""
    one_core.start("thread_metric", test="cooperative", window_ms=60000)
    one_core.session.abort()
    one_core.wait_until_idle()


def test_abort_ends_a_run_soon_and_nothing_is_left_behind(board: Board) -> None:
    """After runs that were cut short as much memory is free as after a whole one."""
    whole: dict[str, Scalar] = {"test": "preemptive", "window_ms": WINDOW_MS, "windows": 1, "warmup": 0}
    cut_short = [
        {"test": test, "window_ms": 60000} for test in ("preemptive", "interrupt_preemption", "basic")
    ]
    board.check_that_nothing_is_left_behind("thread_metric", [whole], cut_short)
