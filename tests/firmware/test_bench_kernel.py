# SPDX-License-Identifier: Apache-2.0
"""What holds for all benches of the kernel: what they refuse, one core, a late host, and what they leave; and
the figures of memory, rhealstone and hartstone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from hil.base.errors import ConfigError
from hil.model import Scalar
from tests.firmware.kernel_rig import NOT_DONE, OK, VOID, Board, measured

pytestmark = pytest.mark.slow

Parameters = Mapping[str, Scalar]
RAMP: Parameters = {"base_ms": 32, "step_ms": 64, "raise_permille": 200, "cap_permille": 700, "ramps": 1}
MEMORY = 3  # a scenario of mcrae: a host's heap is quicker than its clock can tell


@pytest.mark.parametrize(
    ("bench", "parameters", "said"),
    [
        ("cyclictest", {"source": "delay_until", "interval_us": 1500}, "whole number"),
        ("cyclictest", {"source": "delay_until", "threads": "all", "distance_us": 500}, "whole number"),
        ("hartstone", {**RAMP, "base_permille": 800}, "base_permille is above cap_permille"),
        ("hartstone", {**RAMP, "raise": "tasks", "raise_permille": 20}, "more than 14 tasks"),
        ("hartstone", {**RAMP, "raise": "fastest", "base_ms": 8}, "below 200 us; .* base_ms"),
        ("jitter", {"period_us": 1500}, "whole number"),
        ("jitter", {"tick_hz": "100"}, "CONFIG_FREERTOS_HZ=1000"),
        ("jitter", {"load": "migrate"}, "needs task_core=none"),
        ("jitter", {"load": "same_core", "task_core": "none"}, "a core of its own"),
        ("jitter", {"load": "other_core", "task_core": "none"}, "a core of its own"),
        ("jitter", {"load": "psram"}, "no PSRAM"),
        ("jitter", {"resource": "mutex", "task_core": "none"}, "one core"),
        ("jitter", {"trace": "outlier"}, "break_us, which is 0"),
        ("jitter", {"count": 1_000_000, "period_us": 100_000}, "32-bit microseconds"),
        ("mcrae", {"message_bytes": 16385}, "bad-parameter key=message_bytes"),
        ("mcrae", {"block_bytes": 16385}, "bad-parameter key=block_bytes"),
        ("memory", {"memory": "psram"}, "no PSRAM; .*memory=psram"),
        ("task_switch", {"primitive": "spinlock", "placement": "free"}, "placement=free"),
        ("task_switch", {"primitive": "spinlock", "interval_us": 1000}, "interrupts masked"),
        ("task_switch", {"interval_us": 1500}, "no whole number"),
        ("task_switch", {"interval_us": 100000, "timeout_ms": 100}, "timeout_ms .* interval_us"),
        ("task_switch", {"placement": "other"}, r"key=placement allowed=same\|cross\|free"),
        ("thread_metric", {"window_ms": 99}, "bad-parameter key=window_ms"),
    ],
)
def test_what_cannot_be_measured_is_the_configurations_fault(
    board: Board, bench: str, parameters: Parameters, said: str
) -> None:
    """Never a series: it says which parameter, and what it would take; nothing of it stays in memory."""
    free_bytes = board.settled_free_bytes()
    with pytest.raises(ConfigError, match=said):
        board.run(bench, **parameters)
    board.wait_for_free_bytes(free_bytes)


@pytest.mark.parametrize(
    ("bench", "column", "kinds", "parameters"),
    [
        ("rhealstone", "operation", 7, {}),
        ("mcrae", "scenario", 6, {}),
        ("mcrae", "scenario", 6, {"message_bytes": 1, "block_bytes": 16384}),
        ("mcrae", "scenario", 6, {"message_bytes": 64, "block_bytes": 1}),
    ],
)
def test_a_round_is_each_kind_once(
    board: Board, bench: str, column: str, kinds: int, parameters: Parameters
) -> None:
    """Rows come round by round, the warm-up's first; each is done and takes time, whatever the sizes are."""
    series = board.run(bench, count=20, warmup=3, **parameters)
    assert (series.rows, series.warmup_rows) == (23 * kinds, 3 * kinds)
    assert series.columns[column] == tuple(range(kinds)) * 23
    assert NOT_DONE not in series.columns["outcome"]
    for row in measured(series):
        assert row["corrected_ns"] > 0 or (bench, row[column]) == ("mcrae", MEMORY)


def test_a_chip_of_one_core_measures_what_one_core_can(one_core: Board) -> None:
    """What asks for core 1, or for two cores, is the configuration's fault there; the rest is measured."""
    refused: list[tuple[str, Parameters]] = [
        *[("cyclictest", {"threads": "core1"}), ("cyclictest", {"threads": "all"})],
        *[(bench, {"task_core": "1"}) for bench in ("hartstone", "jitter", "memory", "thread_metric")],
        *[("jitter", {"load": load}) for load in ("other_core", "both")],
        *[("jitter", {"load": "migrate", "task_core": "none"}), ("task_switch", {"placement": "cross"})],
        ("publish", {"publisher_core": "1"}),
    ]
    for bench, parameters in refused:
        with pytest.raises(ConfigError, match=r"no core 1|two cores"):
            one_core.run(bench, **parameters)
    done: list[tuple[str, Parameters]] = [
        ("cyclictest", {"loops": 300}),
        ("jitter", {"count": 50, "load": "same_core"}),
        ("jitter", {"count": 50, "load": "flash"}),
        ("jitter", {"count": 50, "resource": "mutex"}),
        ("mcrae", {"count": 20}),
        ("memory", {"count": 1, "warmup": 0}),
        ("rhealstone", {"count": 20}),
    ]
    for bench, parameters in done:
        outcomes = set(one_core.run(bench, **parameters).columns["outcome"])
        assert (OK in outcomes, NOT_DONE in outcomes) == (True, False), bench
    for placement in ("same", "free"):
        rows = measured(one_core.run("task_switch", placement=placement, count=20))
        assert {(row["start_core"], row["end_core"]) for row in rows} == {(0, 0)}
    assert one_core.run("hartstone", **RAMP).columns["task"].count(0) == 1  # the ramp's own row


@pytest.mark.parametrize(
    ("bench", "parameters"),
    [
        ("jitter", {"period_us": 1000, "count": 500}),
        ("task_switch", {"placement": "cross", "count": 2000, "warmup": 0}),
    ],
)
def test_rows_during_which_the_host_was_late_are_void(
    board: Board, bench: str, parameters: Parameters
) -> None:
    """A row is void if and only if the witness was late by void_late_us; with 0 none is."""
    series = board.run_until_void(bench, void_late_us=1000, **parameters)
    late = [late_us >= 1000 for late_us in series.columns["host_late_us"]]
    assert any(late)
    assert [outcome == VOID for outcome in series.columns["outcome"]] == late
    with board.on_a_late_host():
        unjudged = board.run(bench, void_late_us=0, **parameters)
    assert VOID not in unjudged.columns["outcome"]


LONG: Parameters = {"count": 30_000, "period_us": 100_000}
JITTERS: list[Parameters] = [
    *[{"source": source} for source in ("delay_until", "esp_timer", "gptimer")],
    *[{"load": "both"}, {"load": "flash"}, {"load": "migrate", "task_core": "none"}, {"resource": "mutex"}],
]
PRIMITIVES = ("semaphore", "notification", "queue", "mutex", "event_group")


@pytest.mark.parametrize(
    ("bench", "whole", "cut_short"),
    [
        ("cyclictest", [{"loops": 300}], [{"loops": 10_000_000, "threads": "all"}]),
        ("hartstone", [{**RAMP, "raise": "work"}], [{"ramps": 100, "step_ms": 10000}]),
        (
            "jitter",
            [{"count": 10, "period_us": 2000, **one} for one in JITTERS],
            [
                LONG,
                {**LONG, "load": "migrate", "task_core": "none", "source": "gptimer"},
                {**LONG, "resource": "mutex", "source": "esp_timer"},
            ],
        ),
        *[(bench, [{"count": 5}], [{"count": 10000}]) for bench in ("mcrae", "memory", "rhealstone")],
        (
            "task_switch",
            [{"primitive": one, "placement": "cross", "count": 20} for one in PRIMITIVES],
            [{"interval_us": 20000, "count": 100000}],
        ),
    ],
)
def test_abort_ends_a_run_soon_and_nothing_is_left_behind(
    board: Board, bench: str, whole: list[Parameters], cut_short: list[Parameters]
) -> None:
    """Runs that have long to go end when the host aborts them; the next ones work, and all memory is free."""
    board.check_that_nothing_is_left_behind(bench, whole, cut_short)


HEAP_BYTES = (16, 64, 256, 1024, 4096, 16384)
WORK_BYTES = (1024, 4096, 16384, 32768)
HEAP_OPERATIONS, WORK_OPERATIONS = range(5), range(5, 9)
SLOTS = {(operation, size) for operation in HEAP_OPERATIONS for size in HEAP_BYTES} | {
    (operation, size) for operation in WORK_OPERATIONS for size in WORK_BYTES
}


def test_a_round_of_memory_is_each_operation_with_each_size_once(board: Board) -> None:
    """Also where a case is longer than a burst; work on a block takes time that the counter can tell. What is
    corrected is the cost of reading: nanoseconds are the cycles less what two readings in a row show."""
    series = board.run("memory", count=20, warmup=2)
    assert (series.rows, series.warmup_rows) == (22 * len(SLOTS), 2 * len(SLOTS))
    assert NOT_DONE not in series.columns["outcome"]
    slots = Counter(zip(series.columns["operation"], series.columns["size_bytes"], strict=True))
    assert slots == dict.fromkeys(SLOTS, 22)
    for operation in WORK_OPERATIONS:
        assert all(row["raw_cycles"] > 0 for row in measured(series, {"operation": operation}))
    mhz, read_cycles = int(str(series.device["cpu_mhz"])), int(str(series.device["clock_read_cycles"]))
    for row in measured(series):
        assert row["corrected_ns"] == max(0, row["raw_cycles"] - read_cycles) * 1000 // mhz


def test_a_case_beyond_its_time_is_told_row_by_row(board: Board) -> None:
    """What there was no time for is a row that was not done, with its operation and size."""
    series = board.run("memory", count=200, warmup=0, timeout_ms=100)
    assert series.rows == 200 * len(SLOTS)
    late = series.columns["outcome"][-len(SLOTS) :]
    assert set(late) == {NOT_DONE}
    assert set(series.columns["raw_cycles"][-len(SLOTS) :]) == {0}
    last = (series.columns[name][-len(SLOTS) :] for name in ("operation", "size_bytes"))
    assert set(zip(*last, strict=True)) == SLOTS


OPERATIONS = 6
OF_ROUND = OPERATIONS + 1


def test_rhealstones_figure_is_one_by_the_mean_of_the_six(board: Board) -> None:
    """Of each round the mean, void where one of the six is; how often it fits a second is the Rhealstone."""
    columns = board.run_until_void("rhealstone", count=1500, void_late_us=1000).columns
    for first in range(0, len(columns["operation"]), OF_ROUND):
        six, mean = slice(first, first + OPERATIONS), first + OPERATIONS
        assert columns["host_late_us"][mean] == max(columns["host_late_us"][six])
        assert columns["outcome"][mean] == max(columns["outcome"][six])
        if columns["outcome"][mean] == OK:
            assert columns["corrected_ns"][mean] == sum(columns["corrected_ns"][six]) // OPERATIONS
    assert VOID in columns["outcome"][OPERATIONS::OF_ROUND]
    rates = zip(columns["corrected_ns"], columns["per_second_count"], columns["outcome"], strict=True)
    assert all(rate == 10**9 // nanoseconds for nanoseconds, rate, outcome in rates if outcome == OK)


MISSED = 1
PERIODS_US = {
    "PH": [32000, 16000, 8000, 4000, 2000],
    "PN": [32000, 21333, 12800, 9142, 5818],
}
Row = dict[str, int]


def climb(board: Board, **parameters: Scalar) -> tuple[list[list[Row]], list[Row], int]:
    """Run ramps; return the rows of each step of each ramp, the ramps' own rows, the work's speed."""
    series = board.run("hartstone", **{**RAMP, **parameters})
    rows = [{name: column[row] for name, column in series.columns.items()} for row in range(series.rows)]
    steps: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        if row["task"]:
            steps.setdefault((row["ramp"], row["step"]), []).append(row)
    own = [row for row in rows if not row["task"]]
    return list(steps.values()), own, int(str(series.device["work_loops_per_ms"]))


def asked_permille(tasks: list[Row], loops_per_ms: int) -> float:
    return sum(row["work_loops"] / loops_per_ms / row["period_us"] * 1e6 for row in tasks)


@pytest.mark.parametrize("series", ["PH", "PN", "AH", "SH", "SA"])
def test_each_series_asks_for_more_step_by_step(board: Board, series: str) -> None:
    """A row a task and step says what was asked for; a task below the others works on events in AH and SA."""
    steps, own, loops_per_ms = climb(board, series=series, ramps=1, **{"raise": "work"})
    assert len(own) == 1
    events = 1 if series in ("AH", "SA") else 0
    for number, tasks in enumerate(steps):
        assert [row["task"] for row in tasks] == list(range(1, 6 + events))
        assert [row["period_us"] for row in tasks][:5] == PERIODS_US["PN" if series == "PN" else "PH"]
        assert {row["asked_permille"] for row in tasks} <= set(range(298 + 200 * number, 303 + 200 * number))
        assert asked_permille(tasks, loops_per_ms) == pytest.approx(300 + 200 * number, abs=2)


@pytest.mark.parametrize("raised", ["fastest", "all", "work", "tasks"])
def test_a_ramp_raises_one_thing(board: Board, raised: str) -> None:
    """Work, frequencies or the number of tasks: what is not raised stays."""
    steps, _, _ = climb(board, ramps=1, base_ms=64, **{"raise": raised})
    first, last = steps[0], steps[-1]
    changed = {
        key
        for key in ("period_us", "work_loops")
        for before, after in zip(first, last, strict=False)
        if before[key] != after[key]
    }
    if raised == "tasks":
        assert [len(tasks) for tasks in steps] == list(range(5, 5 + len(steps)))
    elif len(steps) > 1:  # on a machine so busy that the first step misses there is no second
        assert changed == ({"work_loops"} if raised == "work" else {"period_us"})


def test_a_ramps_own_row_sums_it_up(board: Board) -> None:
    """What is sustained is what the last step without a miss asked for; a ramp ends at the first miss."""
    steps, own, _ = climb(board, ramps=2, **{"raise": "work"})
    assert [row["ramp"] for row in own] == [1, 2]
    for ramp in own:
        tasks = [row for step in steps for row in step if row["ramp"] == ramp["ramp"]]
        good = [row for row in tasks if row["step"] <= ramp["sustained_steps_count"]]
        assert ramp["sustained_permille"] == max((row["asked_permille"] for row in good), default=0)
        assert not any(row["missed_count"] for row in good)
        assert ramp["activations_count"] == sum(row["activations_count"] for row in tasks)
        assert ramp["missed_count"] == sum(row["missed_count"] for row in tasks)
        assert ramp["response_max_us"] == max(row["response_max_us"] for row in tasks)
        assert ramp["step"] - ramp["sustained_steps_count"] == (1 if ramp["missed_count"] else 0)
        assert all((row["outcome"] in (MISSED, VOID)) for row in tasks if row["missed_count"])
