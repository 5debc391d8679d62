# SPDX-License-Identifier: Apache-2.0
"""How late a periodic task of the virtual board wakes, beside cyclictest of rt-tests on the same CPU."""

from __future__ import annotations

import json
import os
import shutil
import statistics
from collections.abc import Mapping, Sequence

from hil.base.paths import PROJECT_ROOT
from hil.metrics.stats import quantile
from hil.thresholds import load
from tools.bench.figure import Figure
from tools.bench.workbench import Workbench

SOURCES = ("delay_until", "esp_timer", "gptimer")
PERIOD_US = 1000
LOOPS, SHORT_LOOPS = 2000, 200
TURNS = 5
LINUX_PRIORITY = 21  # FreeRTOS's 20 on the host build (firmware/host/idf/kernel/port.c)
HISTOGRAM_US = 100_000
TIMEOUT_S = 60.0
P50_AIM = 2.0  # of delay_until over cyclictest: both sleep until an absolute time, on the kernel's timer
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def periodic_jitter(bench: Workbench, *, short: bool) -> Figure:
    """Measure each source of the bench ``jitter`` and cyclictest in turn: A B C D A B C D … in one run."""
    turns: dict[str, list[Mapping[str, float]]] = {name: [] for name in ("cyclictest", *SOURCES)}
    loops, count = (SHORT_LOOPS, 1) if short else (LOOPS, TURNS)
    for turn in range(count):
        turns["cyclictest"].append(_figures(_cyclictest_us(bench, turn, loops)))
        for source in SOURCES:
            turns[source].append(_figures(_jitter_us(bench, source, loops)))
    found = {name: _medians(figures) for name, figures in turns.items()}
    rows = [_row(name, figures, found["cyclictest"]) for name, figures in found.items()]
    ratio = found["delay_until"]["p50"] / found["cyclictest"]["p50"]
    missed = (
        [f"p50 of delay_until over cyclictest's: {ratio:.2f}, aim {P50_AIM:g}"] if ratio > P50_AIM else []
    )
    note = (
        f"Medians of {count} turns of {loops} wakes each, the maximum over all; every {PERIOD_US} µs, FIFO "
        f"{LINUX_PRIORITY}, one CPU, void samples counted in; virtual. Aim: p50 of delay_until at most "
        f"{P50_AIM:g} times cyclictest's."
    )
    columns = ("", *SHARES, "max", "p50 ratio", "p99 ratio")
    return Figure(
        "Lateness of a periodic task, beside cyclictest of rt-tests (µs)", columns, rows, note, missed
    )


def _row(name: str, figures: Mapping[str, float], theirs: Mapping[str, float]) -> list[str]:
    ratios = [f"{figures[share] / theirs[share]:.2f}" for share in ("p50", "p99")]
    return [name, *(f"{figures[key]:.0f}" for key in (*SHARES, "max")), *ratios]


def _figures(latencies_us: Sequence[float]) -> dict[str, float]:
    found = {name: quantile(latencies_us, share) for name, share in SHARES.items()}
    return {**found, "max": max(latencies_us)}


def _medians(turns: Sequence[Mapping[str, float]]) -> dict[str, float]:
    found = {name: statistics.median(turn[name] for turn in turns) for name in SHARES}
    return {**found, "max": max(turn["max"] for turn in turns)}


def _jitter_us(bench: Workbench, source: str, loops: int) -> list[float]:
    case = load("jitter", PROJECT_ROOT / "thresholds").case(
        {"source": source, "period_us": PERIOD_US, "count": loops, "task_core": "0", "void_late_us": 0}
    )
    series = bench.session.run_case(case, timeout_s=TIMEOUT_S)
    planned, woke = (series.columns[name][series.warmup_rows :] for name in ("planned_us", "woke_us"))
    return [float(at - plan) for plan, at in zip(planned, woke, strict=True)]


def _cyclictest_us(bench: Workbench, turn: int, loops: int) -> list[float]:
    """Run rt-tests' cyclictest on the CPU of the board's core 0, without what it would tune in the host."""
    program = shutil.which("cyclictest")
    if program is None:
        raise RuntimeError("cyclictest was not found: apt-get install rt-tests")
    cpu, result = min(os.sched_getaffinity(0)), bench.folder / "cyclictest.json"
    result.unlink(missing_ok=True)
    words = ["-q", "-m", "-t1", f"-a{cpu}", f"-i{PERIOD_US}", f"-p{LINUX_PRIORITY}", f"-l{loops}"]
    argv = [program, "--default-system", *words, f"-h{HISTOGRAM_US}", f"--json={result}"]
    log = bench.folder / f"cyclictest-{turn}.log"
    status = bench.rack.spawn(argv, netns=bench.board.id, log_path=log).wait(timeout=TIMEOUT_S)
    if status != 0:
        raise RuntimeError(f"cyclictest failed: {log.read_text()}")
    histogram: Mapping[str, int] = json.loads(result.read_text())["thread"]["0"]["histogram"]
    return [float(latency) for latency, count in histogram.items() for _ in range(count)]
