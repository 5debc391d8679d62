# SPDX-License-Identifier: Apache-2.0
"""The task_switch bench as the host sees it: the real firmware on the host build, driven over its console."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Mapping

import pytest

from hil.base.errors import ConfigError
from hil.model import Scalar
from tests.firmware import kernel_rig
from tests.firmware.kernel_rig import NOT_DONE, OK, STATE_TIMEOUT_S, VOID, Board, measured

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


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"primitive": "spinlock", "placement": "free"}, "placement=free has no meaning"),
        ({"primitive": "spinlock", "interval_us": 1000}, "interrupts masked, which lasts no interval"),
        ({"interval_us": 1500}, "no whole number of ticks"),
        ({"interval_us": 100000, "timeout_ms": 100}, "timeout_ms is to be longer than interval_us"),
        ({"placement": "other"}, r"bad-parameter key=placement allowed=same\|cross\|free"),
    ],
)
def test_what_has_no_meaning_is_refused(board: Board, parameters: Mapping[str, Scalar], said: str) -> None:
    """Never a series: the sentence says why it cannot be measured."""
    with pytest.raises(ConfigError, match=said):
        board.run("task_switch", **parameters)


def test_a_chip_of_one_core_has_no_other_core_to_switch_to(one_core: Board) -> None:
    """placement=cross is the configuration's fault there; same and free are measured, on the one core."""
    with pytest.raises(ConfigError, match="this chip has no core 1"):
        one_core.run("task_switch", placement="cross")
    for placement in ("same", "free"):
        rows = measured(one_core.run("task_switch", placement=placement, count=20))
        assert {(row["start_core"], row["end_core"]) for row in rows} == {(0, 0)}


def test_rows_during_which_the_host_was_late_are_void(board: Board) -> None:
    """A row is void if and only if the witness was late by void_late_us; with 0 none is."""
    parameters: dict[str, Scalar] = {"placement": "cross", "count": 2000, "warmup": 0}
    series = board.run_until_void("task_switch", void_late_us=1000, **parameters)
    late = [late_us >= 1000 for late_us in series.columns["host_late_us"]]
    assert any(late)
    assert [outcome == VOID for outcome in series.columns["outcome"]] == late
    with board.on_a_late_host():
        unjudged = board.run("task_switch", void_late_us=0, **parameters)
    assert VOID not in unjudged.columns["outcome"]


def test_abort_ends_a_run_soon_and_the_next_one_works(board: Board) -> None:
    """A run that has half an hour to go ends when the host aborts it, and leaves nothing behind."""
    board.start("task_switch", interval_us=20000, count=100000)
    board.session.abort()
    board.wait_until_idle()
    assert len(measured(board.run("task_switch", count=20))) > 0


def test_no_task_and_no_object_is_left_behind(board: Board) -> None:
    """After ten more runs, refused and aborted ones among them, as much memory is free as after the first."""
    board.run("task_switch", count=20)
    board.wait_until_idle()
    time_of_last_task = time.monotonic() + STATE_TIMEOUT_S
    free_bytes = board.free_bytes()
    while board.free_bytes() != free_bytes:  # a task of that run was still ending
        assert time.monotonic() < time_of_last_task
        free_bytes = board.free_bytes()
    for primitive in PRIMITIVES:
        board.run("task_switch", primitive=primitive, placement="cross", count=20)
    with pytest.raises(ConfigError):
        board.run("task_switch", primitive="spinlock", placement="free")
    board.start("task_switch", interval_us=20000, count=100000)
    board.session.abort()
    board.wait_until_idle()
    for _ in range(4):
        board.run("task_switch", count=20)
    board.wait_for_free_bytes(free_bytes)
    assert not re.search("ESP_ERR_NO_MEM", board.process.received.decode())
