# SPDX-License-Identifier: Apache-2.0
"""How far a PUBACK latency is from what the air says it did to the frames, beside a bare C client."""

from __future__ import annotations

import csv
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path

from hil.base.paths import PROJECT_ROOT
from hil.metrics.stats import quantile
from hil.model import Series
from tools.bench.figure import Figure
from tools.bench.workbench import Workbench, publish_case

DELAYS_MS = (0, 2, 5, 20)
QUANTILES = {"p50": 0.5, "p95": 0.95}
COUNT, SHORT_COUNT = 100, 30
TURNS = 5
INTERVAL_US = 30_000
ERROR_AIM = 3.0
TIMEOUT_S = COUNT * INTERVAL_US / 1e6 + 60
FLOOR_SOURCE = PROJECT_ROOT / "tools" / "bench" / "mqtt_floor.c"


def air_accuracy(bench: Workbench, *, short: bool) -> Figure:
    """Compare what firmware and a bare C client read beyond the air's own delay, in turns."""
    floor = _build_floor(bench.folder)
    rows, missed = [], []
    for delay_ms in DELAYS_MS[:: 3 if short else 1]:
        bench.rack.air.set(bench.board.id, "both", delay_us=delay_ms * 1000)
        turns = [_turn(bench, floor, _count(short), seed=turn + 1) for turn in range(_turns(short))]
        cells = [f"{delay_ms} ms"]
        for name in QUANTILES:
            air_us, ours_us, theirs_us = (
                statistics.median(turn[name][n] for turn in turns) for n in range(3)
            )
            ratio = ours_us / theirs_us
            cells += [f"{air_us / 1000:.3f}", f"{ours_us:+.0f}", f"{theirs_us:+.0f}", f"{ratio:.2f}"]
            if ratio > ERROR_AIM:
                missed.append(f"{name} at {delay_ms} ms one way: {ratio:.2f} times, aim {ERROR_AIM:g}")
        rows.append(cells)
    bench.rack.air.set(bench.board.id, "both", delay_us=0)
    columns = ["air, one way"]
    for name in QUANTILES:
        columns += [f"air {name}, ms", "firmware, µs", "C client, µs", "ratio"]
    note = (
        f"Beyond the air's own delay: planned send → PUBACK handler, and a bare socket's send → PUBACK. "
        f"QoS 1, TCP_NODELAY, medians of {_turns(short)} turns of {_count(short)} samples each, virtual. "
        f"Aim: at most {ERROR_AIM:g} times the C client's."
    )
    return Figure("PUBACK latency beyond what the air did to the frames", columns, rows, note, missed)


def _turn(bench: Workbench, floor: Path, count: int, *, seed: int) -> dict[str, tuple[float, float, float]]:
    """Return quantile → the air's delay, the firmware's error, the C client's error, in µs."""
    under_ours, ours = _beside_air(bench, lambda: _latencies_us(_measure(bench, count)))
    under_theirs, theirs = _beside_air(bench, lambda: _run_floor(bench, floor, count, seed=seed))
    return {
        name: (
            under_ours[name],
            quantile(ours, share) - under_ours[name],
            quantile(theirs, share) - under_theirs[name],
        )
        for name, share in QUANTILES.items()
    }


def _beside_air(bench: Workbench, measure: Callable[[], list[int]]) -> tuple[dict[str, float], list[int]]:
    """Return quantile → what the air delayed meanwhile, both directions added (µs), and what was measured."""
    bench.rack.air.reset_statistics(bench.board.id)
    latencies = measure()
    links = bench.rack.air.statistics(bench.board.id)[bench.board.id]
    delays = {
        name: sum(float(links[direction][f"delay_{name}_us"]) for direction in ("uplink", "downlink"))
        for name in QUANTILES
    }
    return delays, latencies


def awake_gain(bench: Workbench, *, short: bool) -> Figure:
    """Compare the same case with the CPUs kept awake and left alone: A B A B … in one run."""
    awake, left_alone = [], []
    count, turns = _count(short), _turns(short)
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


def _turns(short: bool) -> int:
    return 1 if short else TURNS


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
