# SPDX-License-Identifier: Apache-2.0
"""How far a PUBACK latency is from what the air says it did to the frames; and the harness's own cost."""

from __future__ import annotations

import csv
import statistics
import subprocess
from pathlib import Path

from hil.base.paths import PROJECT_ROOT
from hil.metrics.stats import quantile
from hil.model import Series
from tools.bench.figure import Figure
from tools.bench.workbench import Workbench, publish_case

DELAYS_MS = (0, 2, 5, 20)
COUNT = 300
SHORT_COUNT = 30
INTERVAL_US = 30_000
MEDIAN_AIM_US = 300
P95_AIM_US = 1000
PAIRS = 5
TIMEOUT_S = COUNT * INTERVAL_US / 1e6 + 60
FLOOR_SOURCE = PROJECT_ROOT / "tools" / "bench" / "mqtt_floor.c"


def air_accuracy(bench: Workbench, *, short: bool) -> Figure:
    """Compare planned send → PUBACK with the sum of both directions' delivered delay, per one-way delay."""
    rows, missed = [], []
    count = _count(short)
    for delay_ms in DELAYS_MS[:: 3 if short else 1]:
        bench.rack.air.set(bench.board.id, "both", delay_us=delay_ms * 1000)
        bench.rack.air.reset_statistics(bench.board.id)
        latencies = _latencies_us(_measure(bench, count))
        links = bench.rack.air.statistics(bench.board.id)[bench.board.id]
        cells = [f"{delay_ms} ms"]
        for name, share, aim_us in (("p50", 0.5, MEDIAN_AIM_US), ("p95", 0.95, P95_AIM_US)):
            air_us = sum(float(links[direction][f"delay_{name}_us"]) for direction in ("uplink", "downlink"))
            measured_us = quantile(latencies, share)
            error_us = measured_us - air_us
            cells += [f"{air_us / 1000:.3f}", f"{measured_us / 1000:.3f}", f"{error_us / 1000:+.3f}"]
            if abs(error_us) > aim_us:
                error = f"{error_us / 1000:+.3f} ms, aim {aim_us / 1000:g} ms"
                missed.append(f"{name} at {delay_ms} ms one way: {error}")
        rows.append(cells)
    bench.rack.air.set(bench.board.id, "both", delay_us=0)
    columns = ("air, one way", "air p50", "PUBACK p50", "error", "air p95", "PUBACK p95", "error")
    note = f"QoS 1, TCP_NODELAY at both ends, {count} samples a row, virtual. Aims: p50 0.3 ms, p95 1 ms."
    title = "PUBACK latency against the air's own delivered-delay statistics (ms)"
    return Figure(title, columns, rows, note, missed)


def harness_cost(bench: Workbench, *, short: bool) -> Figure:
    """Compare the bench with a minimal C client on the same path: A B A B … in one run."""
    floor = _build_floor(bench.folder)
    ours, theirs = [], []
    count, turns = _count(short), _pairs(short)
    for index in range(turns):
        ours.append(quantile(_latencies_us(_measure(bench, count)), 0.5))
        theirs.append(statistics.median(_run_floor(bench, floor, count, seed=index + 1)))
    pairs = [a - b for a, b in zip(ours, theirs, strict=True)]
    rows = [
        ("firmware: planned send → PUBACK handler", f"{statistics.median(ours):.0f}"),
        ("minimal C client: send → PUBACK", f"{statistics.median(theirs):.0f}"),
        ("difference, pair by pair: median", f"{statistics.median(pairs):+.0f}"),
        ("difference, pair by pair: range", f"{min(pairs):+.0f} … {max(pairs):+.0f}"),
        ("ratio of medians", f"{statistics.median(ours) / statistics.median(theirs):.2f}"),
    ]
    note = f"p50 of {count} publishes a turn, {turns} turns each, perfect air, virtual."
    return Figure("What timer, tasks and esp-mqtt's stand-in add to the bare socket", ("", "µs"), rows, note)


def awake_gain(bench: Workbench, *, short: bool) -> Figure:
    """Compare the same case with the CPUs kept awake and left alone: A B A B … in one run."""
    awake, left_alone = [], []
    count, turns = _count(short), _pairs(short)
    for _ in range(turns):
        awake.append(quantile(_latencies_us(_measure(bench, count)), 0.5))
        left_alone.append(quantile(_latencies_us(_measure(bench, count, awake=False)), 0.5))
    ratios = [slow / fast for slow, fast in zip(left_alone, awake, strict=True)]
    rows = [
        ("CPUs kept awake", f"{statistics.median(awake):.0f}"),
        ("CPUs left to go idle", f"{statistics.median(left_alone):.0f}"),
        ("ratio, pair by pair: median", f"{statistics.median(ratios):.2f}"),
        ("ratio, pair by pair: range", f"{min(ratios):.2f} … {max(ratios):.2f}"),
    ]
    note = (
        f"p50 of planned send → PUBACK, {count} publishes a turn, {turns} turns each, perfect air, virtual."
    )
    return Figure("What keeping the CPUs awake gains", ("", "µs"), rows, note)


def _count(short: bool) -> int:
    return SHORT_COUNT if short else COUNT


def _pairs(short: bool) -> int:
    return 1 if short else PAIRS


def _measure(bench: Workbench, count: int, *, awake: bool = True) -> Series:
    case = publish_case(count=count, interval_us=INTERVAL_US, qos=1, nodelay=1, transport="tcp")
    with bench.rack.air.awake(TIMEOUT_S if awake else 0):
        return bench.session.run_case(case, timeout_s=TIMEOUT_S)


def _latencies_us(series: Series) -> list[int]:
    columns = series.columns
    rows = zip(columns["planned_us"], columns["done_us"], columns["outcome"], strict=True)
    return [done - planned for planned, done, outcome in rows if outcome == 0][series.warmup_rows :]


def _build_floor(folder: Path) -> Path:
    program = folder / "mqtt_floor"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-o", program, FLOOR_SOURCE], check=True)
    return program


def _run_floor(bench: Workbench, program: Path, count: int, *, seed: int) -> list[int]:
    log = bench.folder / "floor.csv"
    log.unlink(missing_ok=True)
    words = [bench.broker.address, bench.broker.ports.tcp, count, INTERVAL_US, "random", 256, seed]
    argv = ["chrt", "--fifo", "6", str(program), *map(str, words)]  # the publisher task's priority
    with bench.rack.air.awake(TIMEOUT_S):
        status = bench.rack.spawn(argv, netns=bench.board.id, log_path=log).wait(timeout=TIMEOUT_S)
    if status != 0:
        raise RuntimeError(f"the minimal client failed: {log.read_text()}")
    with log.open() as lines:
        return [int(row["rtt_us"]) for row in csv.DictReader(lines)]
