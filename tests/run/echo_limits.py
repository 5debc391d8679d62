# SPDX-License-Identifier: Apache-2.0
"""Limits of the bench echo that compare, without a file of the checkout."""

from __future__ import annotations

from pathlib import Path

from hil import thresholds
from hil.thresholds.types import Thresholds

RACK = "bench-1"

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
