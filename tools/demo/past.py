# SPDX-License-Identifier: Apache-2.0
"""What earlier nights leave in the history: boot values, figures and health."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from hil.history.summary import BoardInRun, CaseFigures, Health, StoredFigure, Summary
from hil.thresholds import Thresholds
from tools.demo.figures import boot_values
from tools.demo.nights import Measured, Night, boots_of

_DIGITS = 6
_OUTAGE = "board {board} could not be flashed: no answer from its loader (simulated)."


def summary_of(
    night: Night, found: Sequence[Measured], thresholds: Mapping[str, Thresholds], newest: Summary
) -> Summary:
    """Return what the history keeps of the night: its own values, and the limits of the ``newest`` night.

    A value is that of all the candidate's rows together, as the gate takes it.
    """
    usual = {(case.board, case.case_id): case for case in newest.cases}
    values = ((one, _values(one, thresholds[one.case.bench])) for one in found)
    cases = [_case(usual[one.board.id, one.case.case_id], own) for one, own in values]
    figures = [figure for case in cases for figure in case.metrics.values()]
    broken = any(figure.outcome == "regressed" and figure.blocking for figure in figures)
    boards = tuple(_board(night, board.id, board.target) for board in night.rack.boards)
    out = any(board.state == "faulted" for board in boards)
    return replace(
        boots_of(night, found, thresholds),
        profile=newest.profile,
        **night.commit_words,
        outcome="regressed" if broken else "undecided" if out else "pass",
        exit_code=1 if broken else 3 if out else 0,
        cases=tuple(cases),
        health=Health(boards),
    )


def _case(usual: CaseFigures, values: Mapping[str, float]) -> CaseFigures:
    return replace(
        usual, metrics={name: _judged(figure, values.get(name)) for name, figure in usual.metrics.items()}
    )


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


def _judged(usual: StoredFigure, value: float | None) -> StoredFigure:
    if usual.limit is None or value is None:
        return replace(usual, value=value, outcome="no-baseline" if value is not None else "undecided")
    beyond = value < usual.limit if usual.direction == "higher" else value > usual.limit
    return replace(usual, value=value, outcome="regressed" if beyond else "pass")


def _board(night: Night, board: str, target: str) -> BoardInRun:
    if night.plan.is_out(night.rack, board, night.number):
        return BoardInRun(board, "virtual", target, "faulted", {"rig": 1}, _OUTAGE.format(board=board))
    return BoardInRun(board, "virtual", target, "measured")
