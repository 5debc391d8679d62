# SPDX-License-Identifier: Apache-2.0
"""Published values beside ours, row by row.

Tables of others, shown as they are and judged by nobody.
"""

from __future__ import annotations

from hil.base.units import find_unit
from hil.reports.studies.declaration import Background, Published, Row
from hil.reports.studies.document import NONE, Table
from hil.reports.studies.records import BoardRun

LOST = "lost"


def published_text(row: Row) -> str:
    if row.published is None:
        return LOST
    return f"{row.published:,g}" + (f" of {row.of}" if row.of else "")


def corrected_text(row: Row) -> str:
    """Return the corrected value; "see note" where there is only a way to get it."""
    if row.corrected is not None:
        return f"{row.corrected:,g}"
    return "see note" if row.formula else NONE


def table_notes(published: Published) -> list[str]:
    """Return what is wrong with the whole table, and why it is lost."""
    lost = [f"Lost: {published.lost}."] if published.lost else []
    return [*lost, *(f"Defect: {_sentence(defect)}" for defect in published.defects)]


def row_notes(row: Row, run: BoardRun, *, measured: bool) -> list[str]:
    """Return what is wrong with a row, how it was corrected, and why it was not measured."""
    notes = []
    if row.defect:
        notes.append(f"{row.label}: {_sentence(row.defect)}")
    if row.why:
        how = f"{row.formula}; " if row.formula else ""
        notes.append(f"{row.label}, corrected: {how}{_sentence(row.why)}")
    if not measured and row.ours:
        notes.append(f"{row.label} was not measured: {_sentence(run.why_missing(row.ours))}")
    return notes


def why_missing(run: BoardRun, row: Row) -> str:
    """Return why nothing of ours compares with a row."""
    return run.why_missing(row.ours) if row.ours else "nothing of ours compares"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def plain_table(table: Background) -> Table:
    """Return a published table of somebody else's with its source."""
    rows = tuple(
        (row.label, *(NONE if value is None else str(value) for value in row.values)) for row in table.rows
    )
    data = tuple(
        {"label": row.label, **dict(zip(table.columns, row.values, strict=True))} for row in table.rows
    )
    notes = (f"Source: {table.source}.", table.remark)
    title = ", ".join(filter(None, (table.title, find_unit(table.unit).symbol, "published")))
    return Table(table.id, title, ("", *table.columns), rows, notes, data, measured=False)
