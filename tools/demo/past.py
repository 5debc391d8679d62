# SPDX-License-Identifier: Apache-2.0
"""What earlier nights leave in the histories: a line of figures and a line of health, each a night."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hil.boards.health import BoardRun, RunHealth
from hil.thresholds import Thresholds
from tools.demo.figures import boot_values
from tools.demo.nights import Measured, Night

_DIGITS = 6
_OUTAGE = "board {board} could not be flashed: no answer from its loader (simulated)."

_Line = Mapping[str, Any]


def figures_line(
    night: Night, found: Sequence[Measured], thresholds: Mapping[str, Thresholds], newest: _Line
) -> _Line:
    """Return the night's line of metrics.jsonl: its own values, and the limits of the ``newest`` line.

    A value is that of all the candidate's rows together, as the gate takes it.
    """
    usual = {(case["board"], case["case_id"]): case for case in newest["cases"]}
    cases = []
    for one in found:
        case = usual[one.board.id, one.case.case_id]
        values = _values(one, thresholds[one.case.bench])
        metrics = {
            name: _judged({**metric, "value": values.get(name)}) for name, metric in case["metrics"].items()
        }
        cases.append({**case, "metrics": metrics})
    broken = any(
        metric["outcome"] == "regressed" and metric.get("blocking")
        for case in cases
        for metric in case["metrics"].values()
    )
    out = len(night.present) < len(night.rack.boards)
    return {
        **newest,
        "run_id": night.run_id,
        "started_utc": night.started_utc,
        "commit": night.commit,
        **night.commit_words,
        "outcome": "regressed" if broken else "undecided" if out else "pass",
        "exit_code": 1 if broken else 3 if out else 0,
        "cases": cases,
    }


def _values(one: Measured, thresholds: Thresholds) -> dict[str, float]:
    pooled = {
        name: np.hstack([column[:1, : one.warmup], column[:, one.warmup :].reshape(1, -1)])
        for name, column in one.of("candidate").items()
    }
    found = {}
    for metric in thresholds.metrics_of(one.case.parameters):
        values = boot_values(metric, pooled, one.warmup)
        if values is not None:
            found[metric.name] = float(f"{values[0]:.{_DIGITS}g}")
    return found


def _judged(metric: dict[str, Any]) -> dict[str, Any]:
    limit, value = metric.get("limit"), metric["value"]
    if limit is None or value is None:
        return {**metric, "outcome": "no-baseline" if value is not None else "undecided"}
    beyond = value < limit if metric.get("direction") == "higher" else value > limit
    return {**metric, "outcome": "regressed" if beyond else "pass"}


def health_line(night: Night) -> RunHealth:
    """Return what the night says of its rack."""
    boards = tuple(_board(night, board.id, board.target) for board in night.rack.boards)
    faulted = any(board.state == "faulted" for board in boards)
    return RunHealth(
        run_id=night.run_id,
        started_utc=night.started_utc,
        rack=night.rack.name,
        trigger="nightly",
        exit_code=3 if faulted else 0,
        boards=boards,
    )


def _board(night: Night, board: str, target: str) -> BoardRun:
    if night.plan.is_out(night.rack, board, night.number):
        return BoardRun(board, "virtual", target, "faulted", {"rig": 1}, _OUTAGE.format(board=board))
    return BoardRun(board, "virtual", target, "measured")
