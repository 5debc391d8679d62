# SPDX-License-Identifier: Apache-2.0
"""A hand-made history of a rack, and thresholds that compare: what the tests of baselines share."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from hil import thresholds
from hil.history import load
from hil.history.saving import Point, append, build
from hil.history.segment import Image, SegmentBoard
from hil.metrics.sessions import History
from hil.model import Scalar
from hil.thresholds.types import Thresholds

RACK = "bench-1"
IMAGE = "a" * 64
COMMIT = "c" * 40
P50, FAILED, SIZE = "echo_latency_p50_us", "echo_failed_ratio", "image_bytes"
FIRST = datetime.datetime(2026, 11, 1, 1, 0, tzinfo=datetime.UTC)

ECHO = """\
schema: 1
bench: echo
parameters:
  transport: {default: tcp, choices: [tcp, tls]}
  count: {default: 100, min: 1, max: 1000}
  timeout_ms: {default: 5000, min: 1, max: 60000}
outcome: {column: outcome, ok: 0, timeout: timeout_ms}
suites:
  quick:
    - {}
  pr:
    - {}
metrics:
  echo_latency_p50_us: {of: done_us - planned_us, statistic: p50, direction: lower, blocking: compared}
  echo_failed_ratio: {of: outcome, statistic: ratio, scale: count, direction: lower, blocking: true}
  echo_latency_p95_us: {of: done_us - planned_us, statistic: p95, direction: lower, blocking: false}
compare:
  - where: {metric: echo_latency_p50_us}
    why: what an echo usually takes
  - where: {metric: echo_failed_ratio}
    tolerance_percent: 2
    min_effect_percent: 0.5
    why: what gets lost
"""


def echo_thresholds(folder: Path) -> dict[str, Thresholds]:
    """Write and read the one thresholds file of these tests."""
    (folder / "thresholds").mkdir(exist_ok=True)
    (folder / "thresholds" / "echo.yaml").write_text(ECHO)
    return thresholds.load_all(folder / "thresholds")


def add_sessions(
    folder: Path,
    count: int,
    *,
    first: int = 0,
    level_us: float = 7000.0,
    boot_deviation: float = 0.02,
    boots: int = 4,
    trigger: str = "baseline",
    commit: str = COMMIT,
    dirty: bool = False,
    image: str = IMAGE,
    ruler: str = "r" * 64,
    channel: int = 6,
    rack: str = RACK,
    product: str = "",
) -> list[str]:
    """Append sessions of two boards, a day apart, to the history in ``folder``; return their run ids."""
    case_id = "echo/count=100,timeout_ms=5000,transport=tcp"
    conditions: Mapping[str, Scalar] = {"channel": channel}
    described = [SegmentBoard(board, "esp32", "physical", conditions) for board in ("e1", "e2")]
    run_ids = []
    for number in range(first, first + count):
        started = FIRST + datetime.timedelta(days=number)
        head = {
            "run_id": f"{started:%Y%m%dT%H%M%SZ}-pr-{number:04x}",
            "started_utc": f"{started:%Y-%m-%dT%H:%M:%SZ}",
            "rack": rack,
            "suite": "pr",
            "trigger": trigger,
            "commit": commit,
            "dirty": dirty,
            "product": product,
        }
        points = [
            Point(board, "candidate", boot, image, case_id, metric, value, 100, 0)
            for board in ("e1", "e2")
            for boot, latency in enumerate(_latencies(number, board, boots, level_us, boot_deviation))
            for metric, value in ((P50, latency), (FAILED, 0.0))
        ]
        append(folder, build(head, described, [Image("candidate", "esp32", image, {"echo": ruler})], points))
        run_ids.append(str(head["run_id"]))
    return run_ids


def history_of(folder: Path) -> History:
    return load(folder, racks=[RACK])


def _latencies(number: int, board: str, boots: int, level_us: float, deviation: float) -> Sequence[float]:
    chance = np.random.RandomState([number, *board.encode()])
    session = chance.normal(0.0, deviation / 2)
    return [float(level_us * np.exp(session + chance.normal(0.0, deviation))) for _ in range(boots)]
