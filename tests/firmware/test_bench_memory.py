# SPDX-License-Identifier: Apache-2.0
"""The memory bench as the host sees it: the real firmware on the host build, driven over its console."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.firmware.kernel_rig import NOT_DONE, Board, measured

pytestmark = pytest.mark.slow

HEAP_BYTES = (16, 64, 256, 1024, 4096, 16384)
WORK_BYTES = (1024, 4096, 16384, 32768)
HEAP_OPERATIONS, WORK_OPERATIONS = range(5), range(5, 9)
SLOTS = {(operation, size) for operation in HEAP_OPERATIONS for size in HEAP_BYTES} | {
    (operation, size) for operation in WORK_OPERATIONS for size in WORK_BYTES
}


def test_a_round_is_each_operation_with_each_size_once(board: Board) -> None:
    """Also where a case is longer than a burst; work on a block takes time that the counter can tell."""
    series = board.run("memory", count=20, warmup=2)
    assert (series.rows, series.warmup_rows) == (22 * len(SLOTS), 2 * len(SLOTS))
    assert NOT_DONE not in series.columns["outcome"]
    slots = Counter(zip(series.columns["operation"], series.columns["size_bytes"], strict=True))
    assert slots == dict.fromkeys(SLOTS, 22)
    for operation in WORK_OPERATIONS:
        assert all(row["raw_cycles"] > 0 for row in measured(series, {"operation": operation}))


def test_what_is_corrected_is_the_cost_of_reading(board: Board) -> None:
    """Nanoseconds are the cycles less what two readings in a row show."""
    series = board.run("memory", count=2, warmup=0)
    mhz, read_cycles = int(str(series.device["cpu_mhz"])), int(str(series.device["clock_read_cycles"]))
    for row in measured(series):
        wanted_ns = max(0, row["raw_cycles"] - read_cycles) * 1000 // mhz
        assert row["corrected_ns"] == wanted_ns


def test_a_case_beyond_its_time_is_told_row_by_row(board: Board) -> None:
    """What there was no time for is a row that was not done, with its operation and size."""
    series = board.run("memory", count=200, warmup=0, timeout_ms=100)
    assert series.rows == 200 * len(SLOTS)
    late = series.columns["outcome"][-len(SLOTS) :]
    assert set(late) == {NOT_DONE}
    assert set(series.columns["raw_cycles"][-len(SLOTS) :]) == {0}
    last = (series.columns[name][-len(SLOTS) :] for name in ("operation", "size_bytes"))
    assert set(zip(*last, strict=True)) == SLOTS
