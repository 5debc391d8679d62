# SPDX-License-Identifier: Apache-2.0
"""The hartstone bench as the host sees it: the real firmware on the host build, driven over its console."""

from __future__ import annotations

import pytest

from hil.model import Scalar
from tests.firmware.kernel_rig import Board

pytestmark = pytest.mark.slow

MISSED, VOID = 1, 2
SHORT: dict[str, Scalar] = {"base_ms": 32, "step_ms": 64, "raise_permille": 200, "cap_permille": 700}
PERIODS_US = {
    "PH": [32000, 16000, 8000, 4000, 2000],
    "PN": [32000, 21333, 12800, 9142, 5818],
}
Row = dict[str, int]


def climb(board: Board, **parameters: Scalar) -> tuple[list[list[Row]], list[Row], int]:
    """Run ramps; return the rows of each step of each ramp, the ramps' own rows, the work's speed."""
    series = board.run("hartstone", **{**SHORT, **parameters})
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
