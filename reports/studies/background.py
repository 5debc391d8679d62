"""Tables of others, shown as they are and judged by nobody."""

from __future__ import annotations

from hil.base.units import find_unit
from hil.reports.studies.declaration import Background
from hil.reports.studies.document import NONE, Table


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
