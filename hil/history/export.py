# SPDX-License-Identifier: Apache-2.0
"""The history as CSV: a line a boot value, everything named, for spreadsheets and statistics programs."""

from __future__ import annotations

import csv
import math
from typing import TextIO

from hil.base.units import QuantityError, unit_of
from hil.metrics.sessions import History, SeriesHistory
from hil.model import bench_of

COLUMNS = (
    "time_utc",
    "rack",
    "board",
    "target",
    "kind",
    "bench",
    "case",
    "metric",
    "unit",
    "role",
    "value",
    "beyond_timeout",
    "samples",
    "hits",
    "boot",
    "run_id",
    "trigger",
    "commit",
    "dirty",
    "firmware_sha256",
    "ruler",
    "product",
)


def write_csv(history: History, stream: TextIO) -> None:
    """Write a heading and a line a boot value, by series, then time.

    ``value`` is empty where it fell among timeouts, which ``beyond_timeout`` says.
    """
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for entry in history.entries.values():
        writer.writerows(_lines(history, entry))


def _lines(history: History, entry: SeriesHistory) -> list[list[object]]:
    columns = (entry.session, entry.boot, entry.value, entry.samples, entry.hits, entry.ruler, entry.firmware)
    name = entry.name
    board, case_id, metric = name.board, name.case_id, name.metric
    lines: list[list[object]] = []
    for number, boot, value, samples, hits, ruler, firmware in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        session = history.sessions[number]
        facts = session.boards.get(board)
        lines.append(
            [
                session.started_utc,
                session.rack,
                board,
                facts.target if facts else "",
                session.kind_of(board),
                bench_of(case_id),
                case_id,
                metric,
                _unit(metric),
                entry.role,
                "" if math.isinf(value) else f"{value:.10g}",
                int(math.isinf(value)),
                samples,
                hits,
                boot,
                session.run_id,
                session.trigger,
                session.commit,
                int(session.dirty),
                firmware,
                ruler,
                session.product,
            ]
        )
    return lines


def _unit(metric: str) -> str:
    try:
        return unit_of(metric).name
    except QuantityError:
        return ""
