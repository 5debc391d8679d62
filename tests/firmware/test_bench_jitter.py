# SPDX-License-Identifier: Apache-2.0
"""The jitter and cyclictest benches as the host sees them: the real firmware, driven over its console."""

from __future__ import annotations

import statistics
import subprocess
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import trustme

from hil.base.errors import ConfigError
from hil.metrics.values import its_rows
from hil.model import Case, Scalar, Series
from hil.thresholds import load as load_thresholds
from hil.trace.events import EventKind, Mark, Trace
from hil.trace.reading import read_trace
from tests.boards.rack_tools import CHECKOUT
from tests.firmware.kernel_rig import NOT_DONE, OK, VOID, Board, measured
from tests.make_records import publish_record
from tests.network.mqtt_rig import Mosquitto

pytestmark = pytest.mark.slow

CPU_MHZ = 240
BEHIND_US = 190_322  # core 1's counter, by construction
BURST_ROWS = 48 * 1024 // (12 * 4)
MIDDLE_BURST_US = 5000  # rtos/contention.h
MESSAGE_BYTES = 1024
NEVER_US = 1_000_000
SOURCES = ("delay_until", "esp_timer", "gptimer")
TIMEOUT_S = 30.0


def run(board: Board, **parameters: Scalar) -> Series:
    return board.run("jitter", **{"count": 50, "warmup": 5, "period_us": 2000, **parameters})


def read(board: Board) -> Trace:
    sent = board.session.run_case(Case(bench="trace", parameters={}), timeout_s=TIMEOUT_S)
    return read_trace(sent.columns, sent.device, exact=False)


@pytest.mark.parametrize("source", SOURCES)
def test_each_source_keeps_an_absolute_grid(board: Board, source: str) -> None:
    """Plans are exactly a period apart, each wake belongs to its own, and what the columns share agrees."""
    series = run(board, source=source, period_us=1000, count=200)
    assert (series.rows, series.warmup_rows) == (205, 5)
    planned = series.columns["planned_us"]
    assert {after - before for before, after in pairwise(planned)} == {1000}
    assert int(str(series.device["grid_error_us"])) < 1000
    rows = measured(series)
    assert statistics.median(row["woke_us"] - row["planned_us"] for row in rows) < 1000
    for row in rows:
        assert row["planned_us"] <= row["woke_us"] == row["acquired_us"]
        assert row["deviation_us"] == abs(row["interval_us"] - 1000)
        assert row["start_core"] == row["end_core"] == 0
        assert abs(row["interval_raw_cycles"] / CPU_MHZ - row["interval_corrected_ns"] / 1000) < 10


@pytest.mark.parametrize("source", SOURCES)
def test_only_an_interrupt_of_its_own_has_a_time(board: Board, source: str) -> None:
    """isr_us lies between plan and wake where GPTimer interrupts, and is 0 with the other sources."""
    rows = measured(run(board, source=source))
    assert rows
    if source == "gptimer":
        assert all(row["planned_us"] <= row["isr_us"] <= row["woke_us"] for row in rows)
    else:
        assert {row["isr_us"] for row in rows} == {0}


def test_a_run_longer_than_the_buffer_comes_in_bursts(board: Board) -> None:
    """Each burst has its own grid, a pause before it, and no warm-up but the first one's.

    No interval spans the pause: it begins at the wake before, which is not before that wake's plan.
    """
    series = run(board, source="gptimer", period_us=1000, count=BURST_ROWS + 50)
    assert (series.rows, series.warmup_rows) == (BURST_ROWS + 55, 5)
    gaps = [after - before for before, after in pairwise(series.columns["planned_us"])]
    assert {gap for row, gap in enumerate(gaps) if row != BURST_ROWS - 1} == {1000}
    assert gaps[BURST_ROWS - 1] > 3000
    columns = [series.columns[name][BURST_ROWS:] for name in ("planned_us", "woke_us", "interval_us")]
    assert all(woke - interval > planned - 2000 for planned, woke, interval in zip(*columns, strict=True))


@pytest.mark.parametrize(
    ("load", "told"),
    [
        ("same_core", "load_hog_rounds_count"),
        ("other_core", "load_hog_rounds_count"),
        ("both", "load_hog_rounds_count"),
        ("flash", "load_sectors_count"),
    ],
)
def test_a_load_works_while_it_is_measured(board: Board, load: str, told: str) -> None:
    """Each load says how much it did, and nothing of it failed; the task wakes all the same."""
    series = run(board, load=load)
    assert int(str(series.device[told])) > 0
    assert int(str(series.device.get("load_sectors_failed_count", 0))) == 0
    assert NOT_DONE not in series.columns["outcome"]


def test_network_is_messages_of_1_kb_at_the_broker(board: Board, tmp_path: Path) -> None:
    """The broker gets them, and the firmware counts those that it was not given; it has to know of one."""
    with pytest.raises(ConfigError, match="the broker of transport=tcp was not provisioned"):
        run(board, load="network")
    with Mosquitto.run(tmp_path, trustme.CA()) as broker:
        port = str(broker.ports["tcp"])
        board.session.provision({"broker_host": "127.0.0.1", "broker_tcp_port": broker.ports["tcp"]})
        ask = f"mosquitto_sub -h 127.0.0.1 -p {port} -t hil/+/load -C 5 -W 20 -F %l".split()
        with subprocess.Popen(ask, stdout=subprocess.PIPE, text=True) as subscriber:
            series = run(board, load="network", count=200)
            lengths, _ = subscriber.communicate(timeout=TIMEOUT_S)
    assert lengths.split() == [str(MESSAGE_BYTES)] * 5
    assert int(str(series.device["load_messages_count"])) >= 5
    assert series.device["load_messages_failed_count"] == 0


def test_migration_moves_the_task_and_shows_what_the_raw_counter_holds(board: Board) -> None:
    """The task is pushed to and fro; raw differences are off by the cores' offset, corrected ones are not."""
    rows = measured(run(board, load="migrate", task_core="none", period_us=10000))
    moved = {(row["start_core"], row["end_core"]) for row in rows}
    assert {(0, 1), (1, 0)} <= moved
    wrap_us = 2**32 / CPU_MHZ
    for row in rows:
        true_us, raw_us = row["interval_us"], row["interval_raw_cycles"] / CPU_MHZ
        offset_us = (row["start_core"] - row["end_core"]) * BEHIND_US
        assert abs(row["interval_corrected_ns"] / 1000 - true_us) < 100
        assert abs(raw_us - (true_us + offset_us) % wrap_us) < 100


def test_a_lock_is_waited_for_within_an_interval(board: Board) -> None:
    """A lower task holds it at times, and inherits while the periodic one waits: middle's bursts stay out. An
    interval begins at the wake before: the wait that follows that wake is in it, and is no deviation."""
    series = run(board, resource="mutex", period_us=10000, count=100)
    waits = [row["acquired_us"] - row["woke_us"] for row in measured(series)]
    assert int(str(series.device["low_holds_count"])) > 0
    assert statistics.median(waits) < MIDDLE_BURST_US / 2
    assert max(waits) > 0
    columns = series.columns
    gaps = [after - before for before, after in pairwise(columns["woke_us"])]
    left_out = sum(gaps) - sum(columns["interval_us"][1:])
    assert left_out < (sum(columns["acquired_us"]) - sum(columns["woke_us"])) / 2


def test_the_trace_freezes_at_what_is_later_than_asked_for(board: Board) -> None:
    """An outlier leaves a frozen trace with the task's marks; without one there is none to fetch."""
    assert "trace_events_count" not in run(board, trace="outlier", break_us=NEVER_US).device
    series = run(board, trace="outlier", break_us=1, resource="mutex")
    assert series.device["trace_frozen"] == 1
    trace = read(board)
    marks = [event for event in trace.events if event.kind == EventKind.MARK]
    assert {trace.tasks[event.task].name for event in marks} == {"jitter"}
    outliers = [event for event in marks if event.mark == Mark.OUTLIER]
    assert len(outliers) == 1
    assert outliers[0].argument > 1
    assert {Mark.PLANNED, Mark.WOKE, Mark.ACQUIRED} <= {event.mark for event in marks}


def test_a_late_wake_of_the_warm_up_does_not_use_up_the_trace(board: Board) -> None:
    """The wake that froze the trace is one of those that count, whatever the host makes of its row."""
    series = run(board, trace="outlier", break_us=1, resource="mutex", warmup=20, count=30)
    outliers = [event for event in read(board).events if event.mark == Mark.OUTLIER]
    columns = [series.columns[name][20:] for name in ("planned_us", "woke_us", "acquired_us")]
    waits = [max(woke - planned, acquired - woke) for planned, woke, acquired in zip(*columns, strict=True)]
    assert outliers[0].argument == next(wait for wait in waits if wait > 1)


def test_a_trace_of_the_end_holds_the_last_wakes(board: Board) -> None:
    """trace=end keeps the events before the end, however long the run, and nothing is an outlier."""
    series = run(board, trace="end", source="gptimer", period_us=1000, count=300)
    assert (series.device["trace_frozen"], "trace_events_count" in series.device) == (1, True)
    marks = [event.mark for event in read(board).events if event.kind == EventKind.MARK]
    assert Mark.WOKE in marks
    assert Mark.OUTLIER not in marks


LOOPS = 300


def cyclic(board: Board, **parameters: Scalar) -> Series:
    return board.run("cyclictest", **{"loops": LOOPS, "warmup": 5, **parameters})


def loops(series: Series, outcome: int | None = None) -> Counter[int]:
    """Return how many loops each thread counted, with one outcome or with any."""
    found: Counter[int] = Counter()
    columns = series.columns
    for thread, count, value in zip(
        columns["thread"], columns["loops_count"], columns["outcome"], strict=True
    ):
        found[thread] += count if outcome in (None, value) else 0
    return found


@pytest.mark.parametrize("source", ["delay_until", "esp_timer", "gptimer"])
def test_every_loop_of_every_thread_is_counted(board: Board, source: str) -> None:
    """A thread on each core, its loops in buckets from the quickest on, and none missing."""
    series = cyclic(board, threads="all", source=source, distance_us=1000)
    assert loops(series) == {0: LOOPS, 1: LOOPS}
    assert series.columns["core"] == series.columns["thread"]
    assert NOT_DONE not in series.columns["outcome"]
    for thread in (0, 1):
        columns = zip(*(series.columns[name] for name in ("thread", "outcome", "latency_us")), strict=True)
        buckets = [latency for its, outcome, latency in columns if (its, outcome) == (thread, OK)]
        assert buckets == sorted(set(buckets))
    assert all(count > 0 for count in series.columns["loops_count"])


@pytest.mark.parametrize(("threads", "core"), [("core0", 0), ("core1", 1)])
def test_one_thread_runs_on_the_core_that_is_asked_for(board: Board, threads: str, core: int) -> None:
    """Alone it is thread 0, wherever it runs."""
    series = cyclic(board, threads=threads)
    assert set(series.columns["core"]) == {core}
    assert loops(series) == {0: LOOPS}


def test_a_latency_beyond_break_us_ends_the_run_and_freezes_the_trace(board: Board) -> None:
    """It is told who it was, and by how much; loops that were not run are a row; the trace shows it."""
    series = cyclic(board, threads="all", break_us=1, loops=100_000)
    device = series.device
    assert (device["broken"], device["trace_frozen"]) == (1, 1)
    assert int(str(device["break_latency_us"])) > 1
    assert sum(loops(series, NOT_DONE).values()) > 100_000
    assert loops(series) == {0: 100_000, 1: 100_000}
    trace = read(board)
    outliers = [
        event for event in trace.events if event.kind == EventKind.MARK and event.mark == Mark.OUTLIER
    ]
    assert [event.argument for event in outliers] == [device["break_latency_us"]]
    assert trace.tasks[outliers[0].task].name == f"cyclic_{device['break_thread']}"


def test_a_run_that_keeps_within_break_us_is_whole(board: Board) -> None:
    """It says that it did not break, and there is no trace to fetch."""
    series = cyclic(board, break_us=NEVER_US)
    assert (series.device["broken"], "trace_events_count" in series.device) == (0, False)
    assert loops(series) == {0: LOOPS}


def test_loops_during_which_the_host_was_late_are_void(board: Board) -> None:
    """They leave the histogram for rows of their own, each with how late the host was; with 0 none does."""
    with board.on_a_late_host():
        series = cyclic(board, threads="all", loops=500, void_late_us=1000)
        unjudged = cyclic(board, loops=100, void_late_us=0)
    late = [late_us >= 1000 for late_us in series.columns["host_late_us"]]
    assert any(late)
    assert [outcome == VOID for outcome in series.columns["outcome"]] == late
    assert sum(loops(series, VOID).values()) == int(str(series.device["void_loops_count"]))
    assert loops(series) == {0: 500, 1: 500}
    assert set(unjudged.columns["outcome"]) == {OK}


def test_metrics_weigh_a_row_by_its_loops(board: Board) -> None:
    """Each metric of the thresholds file sees as many samples as there were loops that are not void."""
    series = cyclic(board, threads="all")
    metrics = load_thresholds("cyclictest", CHECKOUT / "thresholds").metrics
    assert {metric.weight for metric in metrics.values() if not metric.is_metered} == {"loops_count"}
    record = replace(publish_record(), columns=series.columns, warmup_rows=series.warmup_rows)
    whole, core_1 = metrics["cyclictest_latency_p99_us"], metrics["cyclictest_core1_latency_p99_us"]
    void = loops(series, VOID)
    assert its_rows(whole, record).rows == 2 * LOOPS - void[0] - void[1]
    assert its_rows(core_1, record).rows == LOOPS - void[1]
