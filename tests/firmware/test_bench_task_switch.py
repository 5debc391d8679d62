# SPDX-License-Identifier: Apache-2.0
"""The task_switch bench as the host sees it: the real firmware on the host build, driven over its console."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

import pytest

from tests.firmware import kernel_rig
from tests.firmware.kernel_rig import NOT_DONE, OK, VOID, Board, measured

pytestmark = pytest.mark.slow

CPU_MHZ = 240
BEHIND_US = 190_322  # of core 1's counter, where nobody says else
CLOCKS_APART_US = 100  # medians of two clocks that are read one after the other, on a busy machine
MISSED_MAX = 10  # of 100: a machine that stalls a core has a round given up
PRIMITIVES = ("semaphore", "notification", "queue", "mutex", "event_group")
CORES = {"same": ({0}, {0}), "cross": ({1}, {0}), "free": ({0, 1}, {0, 1})}
PLAYED = [(primitive, placement) for primitive in PRIMITIVES for placement in CORES]
PLAYED += [("spinlock", "same"), ("spinlock", "cross")]


def median(rows: list[dict[str, int]], column: str) -> float:
    return statistics.median(row[column] for row in rows)


@pytest.mark.alone
@pytest.mark.parametrize(("primitive", "placement"), PLAYED)
def test_every_primitive_is_measured_where_it_is_asked_for(
    board: Board, primitive: str, placement: str
) -> None:
    """As many rows as asked for, on the cores asked for, and two clocks that agree on how long it took."""
    series = board.run("task_switch", primitive=primitive, placement=placement, count=100, warmup=5)
    assert (series.rows, series.warmup_rows) == (105, 5)
    missed = series.columns["outcome"][series.warmup_rows :].count(NOT_DONE)
    assert missed <= MISSED_MAX, missed
    rows = measured(series)
    assert rows
    starts, ends = CORES[placement]
    assert {row["start_core"] for row in rows} <= starts
    assert {row["end_core"] for row in rows} <= ends
    assert abs(median(rows, "corrected_ns") / 1000 - median(rows, "common_us")) < CLOCKS_APART_US
    assert median(rows, "corrected_ns") > 0
    assert median(rows, "give_ns") > 0


@pytest.mark.alone
@pytest.mark.parametrize(
    ("variables", "behind_us"),
    [({}, BEHIND_US), ({"VBOARD_CORE1_BEHIND_US": "5000"}, 5000), ({"VBOARD_CORE1_BEHIND_US": "0"}, 0)],
)
def test_the_raw_difference_across_cores_holds_their_offset(
    variables: Mapping[str, str], behind_us: int
) -> None:
    """What the counters differ by is in raw_cycles and told, and in neither of the other two clocks."""
    with kernel_rig.board(kernel_rig.firmware(), **variables) as other:
        cross, same = (other.run("task_switch", placement=placement) for placement in ("cross", "same"))
    rows = measured(cross)
    raw_us = median(rows, "raw_cycles") / CPU_MHZ
    assert abs(raw_us - median(rows, "common_us") - behind_us) < CLOCKS_APART_US
    told_us = -int(str(cross.device["core1_offset_cycles"])) / CPU_MHZ
    assert abs(told_us - behind_us) < CLOCKS_APART_US
    rows = measured(same)
    assert abs(median(rows, "raw_cycles") / CPU_MHZ - median(rows, "common_us")) < CLOCKS_APART_US


def test_what_the_clocks_cost_is_told(board: Board) -> None:
    """The end line says what reading costs, how well the offset is known, and who gave to whom."""
    device = board.run("task_switch", count=1, warmup=0).device
    told = {"clock_read_cycles", "clock_stamp_us", "core1_offset_cycles", "core1_offset_error_cycles"}
    assert told <= set(device)
    assert int(str(device["giver_priority"])) < int(str(device["taker_priority"]))


def test_an_interval_spaces_the_samples(board: Board) -> None:
    """The giver lets that time pass before each give; the taker waits as long."""
    series = board.run("task_switch", placement="cross", interval_us=10000, count=10, warmup=0)
    assert set(series.columns["outcome"]) <= {OK, VOID}
    assert int(str(series.device["host_cpu_wall_us"])) > 9 * 10000


def test_a_long_run_comes_in_bursts(board: Board) -> None:
    """More rows than the buffer takes are all there, the warm-up in front of them once."""
    series = board.run("task_switch", count=2500, warmup=20)
    assert (series.rows, series.warmup_rows) == (2520, 20)
    assert len(measured(series)) + series.columns["outcome"][20:].count(VOID) == 2500
