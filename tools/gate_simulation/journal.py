# SPDX-License-Identifier: Apache-2.0
"""From statistics to the records of a journal: rows that have exactly these statistics, and few of them.

What the gate computes of a boot hangs on its statistics alone, so few rows do for a hundred samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hil.metrics.metric import Metric
from hil.model import Case, RunRecord, Scalar
from tools.gate_simulation.boots import Statistics, Turns
from tools.gate_simulation.shipped import BASE, CANDIDATE, Leg

ROWS = 40
EXACT = 1_000_000
_DEVICE: Mapping[str, Scalar] = {"channel": 6, "rssi_dbm": -60}


def records_of(leg: Leg, turns: Turns, case: Case, measured: Mapping[str, Statistics]) -> Iterator[RunRecord]:
    """Yield the record of each boot of a case."""
    metrics, own = leg.metrics[case.case_id], leg.comparison
    rows = _rows_of(metrics)
    fixed = _fixed_columns(metrics, rows)
    drawn = {column: with_statistics(statistics, rows) for column, statistics in measured.items()}
    for place, board in enumerate(own.boards):
        for boot, is_candidate in enumerate(turns.candidate[place]):
            columns = {name: tuple(values[place, boot].tolist()) for name, values in drawn.items()}
            yield RunRecord(
                own.run_id, own.rack, board, own.target, "physical",
                "candidate" if is_candidate else own.role, boot, case.bench, case.parameters,
                CANDIDATE if is_candidate else BASE, "ruler", 1, "esp_timer", "2026-01-01T00:00:00Z", 0,
                {**fixed, **columns}, {"device": _DEVICE, "rig": {"slot": f"ota_{turns.slot[place, boot]}"}},
            )  # fmt: skip


def _rows_of(metrics: Sequence[Metric]) -> int:
    """Return the fewest rows that suffice: 0 of 40 failures, in all boots, is few enough to pass."""
    counted = any(one.scale == "count" for one in metrics)
    return ROWS if counted or len({one.statistic for one in metrics}) > 1 else 1


def _fixed_columns(metrics: tuple[Metric, ...], rows: int) -> dict[str, tuple[int, ...]]:
    """Return the columns that are alike in all boots: sizes, outcomes, moments that others count from."""
    columns: dict[str, tuple[int, ...]] = {}
    for metric in metrics:
        columns |= {term.column: (EXACT * metric.exact,) * rows for term in metric.terms}
        if metric.per:
            columns[metric.per] = (EXACT,) * rows
        if metric.outcome:
            columns[metric.outcome.column] = (metric.outcome.ok,) * rows
            columns["host_late_us"] = (0,) * rows
    return columns


def with_statistics(statistics: Statistics, rows: int) -> np.ndarray:
    """Return ascending rows, (boards, boots, rows), that have the statistics asked for.

    Of one statistic each row has its value. More of them are of p50, p95 and tail5, the mean of the last two
    of 40 rows; p95 lies between the two before the last.
    """
    first = next(iter(statistics.values()))
    found = np.repeat(statistics.get("p50", first)[..., np.newaxis], rows, axis=-1)
    if len(statistics) > 1:
        p95 = statistics.get("p95", found[..., 0])
        found[..., -3:-1] = p95[..., np.newaxis]
        found[..., -1] = 2 * statistics.get("tail5", p95) - p95
    return np.asarray(np.rint(found).astype(int))
