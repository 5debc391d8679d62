"""The columns of a record as a metric sees them: without the warm-up, and only the rows that it is for."""

from __future__ import annotations

from dataclasses import replace

from hil.errors import ConfigError
from hil.model import RunRecord
from hil.thresholds.metric import Metric


def its_rows(metric: Metric, record: RunRecord) -> RunRecord:
    """Return the record with the measured rows that the metric is for; with all where it names none."""
    if not metric.rows:
        return record
    wanted = [(column_of(metric, record, name), value) for name, value in metric.rows.items()]
    kept = [
        record.warmup_rows + row
        for row in range(record.measured_rows)
        if all(column[row] == value for column, value in wanted)
    ]
    columns = {name: tuple(column[row] for row in kept) for name, column in record.columns.items()}
    return replace(record, columns=columns, warmup_rows=0)


def column_of(metric: Metric, record: RunRecord, name: str) -> tuple[int, ...]:
    """Return a column without the warm-up rows."""
    if name not in record.columns:
        raise ConfigError(
            f"{metric.source}: metric {metric.name!r} needs the column {name!r}, which {record.case_id} on "
            f"{record.board} did not send; it sent {', '.join(record.columns)}.",
            next_step="correct 'of', or build the firmware of this checkout.",
        )
    return record.columns[name][record.warmup_rows :]
