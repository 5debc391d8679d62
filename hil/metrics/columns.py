"""The columns of a record as a metric sees them: without the warm-up, and only the rows that it is for.

Void rows are in no metric: while they were measured the host under a virtual board was late, by a witness
that no task of the firmware can delay. They are no timeouts, so they do not count as slow either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hil.base.errors import ConfigError
from hil.metrics.metric import Metric
from hil.model import RunRecord

HOST_LATE_COLUMN = "host_late_us"


@dataclass(frozen=True)
class Voids:
    """How many of a metric's ``of`` measured rows are void.

    ``host_late_us`` is the worst that the host was late in them.
    """

    rows: int = 0
    of: int = 0
    host_late_us: int = 0

    @property
    def ratio(self) -> float:
        return self.rows / self.of if self.of else 0.0


def count_voids(metric: Metric, records: Sequence[RunRecord]) -> Voids:
    """Count the void rows of a metric over all boots. Raises ConfigError as column_of() does."""
    found = [(record, void_rows(metric, record)) for record in records]
    late_us = [record.columns[HOST_LATE_COLUMN][row] for record, rows in found for row in rows]
    of = sum(len(_chosen_rows(metric, record)) for record in records)
    return Voids(sum(len(rows) for _, rows in found), of, max(late_us, default=0))


def its_rows(metric: Metric, record: RunRecord) -> RunRecord:
    """Return the record with the measured rows that the metric is for, without those that are void.

    A row that stands for several samples is there as often.
    """
    void = set(void_rows(metric, record))
    if not (metric.rows or void or metric.weight):
        return record
    kept = [row for row in _chosen_rows(metric, record) if row not in void]
    columns = {name: tuple(column[row] for row in kept) for name, column in record.columns.items()}
    if metric.weight:
        columns[metric.weight] = (1,) * len(kept)
    return replace(record, columns=columns, warmup_rows=0)


def void_rows(metric: Metric, record: RunRecord) -> list[int]:
    """Return which of the metric's rows are void, the record's first row being 0."""
    if metric.outcome is None or metric.outcome.void is None:
        return []
    outcomes = column_of(metric, record, metric.outcome.column)
    column_of(metric, record, HOST_LATE_COLUMN)  # without it "void" would be a way to hide failures
    chosen = _chosen_rows(metric, record)
    return [row for row in chosen if outcomes[row - record.warmup_rows] == metric.outcome.void]


def _chosen_rows(metric: Metric, record: RunRecord) -> list[int]:
    wanted = [(column_of(metric, record, name), value) for name, value in metric.rows.items()]
    samples = column_of(metric, record, metric.weight) if metric.weight else (1,) * record.measured_rows
    return [
        record.warmup_rows + row
        for row in range(record.measured_rows)
        if all(column[row] == value for column, value in wanted)
        for _ in range(samples[row])
    ]


def column_of(metric: Metric, record: RunRecord, name: str) -> tuple[int, ...]:
    """Return a column without the warm-up rows."""
    if name not in record.columns:
        raise ConfigError(
            f"{metric.source}: metric {metric.name!r} needs the column {name!r}, which {record.case_id} on "
            f"{record.board} did not send; it sent {', '.join(record.columns)}.",
            next_step=f"correct 'of' (or 'void', which needs {HOST_LATE_COLUMN}), "
            "or build the firmware of this checkout.",
        )
    return record.columns[name][record.warmup_rows :]
