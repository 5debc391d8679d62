# SPDX-License-Identifier: Apache-2.0
"""The cyclictest bench as the host sees it: the real firmware on the host build, driven over its console."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from hil.metrics.values import its_rows
from hil.model import Case, Scalar, Series
from hil.thresholds import load as load_thresholds
from hil.trace.events import EventKind, Mark
from hil.trace.reading import read_trace
from tests.boards.rack_tools import CHECKOUT
from tests.firmware.kernel_rig import NOT_DONE, OK, VOID, Board
from tests.make_records import publish_record

pytestmark = pytest.mark.slow

LOOPS = 300
NEVER_US = 1_000_000
TIMEOUT_S = 30.0


def run(board: Board, **parameters: Scalar) -> Series:
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
    series = run(board, threads="all", source=source, distance_us=1000)
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
    series = run(board, threads=threads)
    assert set(series.columns["core"]) == {core}
    assert loops(series) == {0: LOOPS}


def test_a_latency_beyond_break_us_ends_the_run_and_freezes_the_trace(board: Board) -> None:
    """It is told who it was, and by how much; loops that were not run are a row; the trace shows it."""
    series = run(board, threads="all", break_us=1, loops=100_000)
    device = series.device
    assert (device["broken"], device["trace_frozen"]) == (1, 1)
    assert int(str(device["break_latency_us"])) > 1
    assert sum(loops(series, NOT_DONE).values()) > 100_000
    assert loops(series) == {0: 100_000, 1: 100_000}
    sent = board.session.run_case(Case(bench="trace", parameters={}), timeout_s=TIMEOUT_S)
    trace = read_trace(sent.columns, sent.device, exact=False)
    outliers = [
        event for event in trace.events if event.kind == EventKind.MARK and event.mark == Mark.OUTLIER
    ]
    assert [event.argument for event in outliers] == [device["break_latency_us"]]
    assert trace.tasks[outliers[0].task].name == f"cyclic_{device['break_thread']}"


def test_a_run_that_keeps_within_break_us_is_whole(board: Board) -> None:
    """It says that it did not break, and there is no trace to fetch."""
    series = run(board, break_us=NEVER_US)
    assert (series.device["broken"], "trace_events_count" in series.device) == (0, False)
    assert loops(series) == {0: LOOPS}


def test_loops_during_which_the_host_was_late_are_void(board: Board) -> None:
    """They leave the histogram for rows of their own, each with how late the host was; with 0 none does."""
    with board.on_a_late_host():
        series = run(board, threads="all", loops=500, void_late_us=1000)
        unjudged = run(board, loops=100, void_late_us=0)
    late = [late_us >= 1000 for late_us in series.columns["host_late_us"]]
    assert any(late)
    assert [outcome == VOID for outcome in series.columns["outcome"]] == late
    assert sum(loops(series, VOID).values()) == int(str(series.device["void_loops_count"]))
    assert loops(series) == {0: 500, 1: 500}
    assert set(unjudged.columns["outcome"]) == {OK}


def test_metrics_weigh_a_row_by_its_loops(board: Board) -> None:
    """Each metric of the thresholds file sees as many samples as there were loops that are not void."""
    series = run(board, threads="all")
    metrics = load_thresholds("cyclictest", CHECKOUT / "thresholds").metrics
    assert {metric.weight for metric in metrics.values() if not metric.is_metered} == {"loops_count"}
    record = replace(publish_record(), columns=series.columns, warmup_rows=series.warmup_rows)
    whole, core_1 = metrics["cyclictest_latency_p99_us"], metrics["cyclictest_core1_latency_p99_us"]
    void = loops(series, VOID)
    assert its_rows(whole, record).rows == 2 * LOOPS - void[0] - void[1]
    assert its_rows(core_1, record).rows == LOOPS - void[1]
