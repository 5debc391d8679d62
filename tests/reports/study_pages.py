# SPDX-License-Identifier: Apache-2.0
"""What a study's page shows, by table: its lines in figures, its cells, and what became of a claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hil.reports.studies.document import Document, Table


def table(shown: Document, table_id: str) -> Table:
    found = [one for part in shown.sections for one in part.tables if one.id == table_id]
    assert found, f"there is no table {table_id}"
    return found[0]


def data(shown: Document, table_id: str, **wanted: object) -> Mapping[str, Any]:
    """Return the first line of a table that has these figures."""
    lines = table(shown, table_id).data
    return next(one for one in lines if all(one[key] == value for key, value in wanted.items()))


def cells(shown: Document, table_id: str, label: str) -> tuple[str, ...]:
    return next(row for row in table(shown, table_id).rows if row[0] == label)


def claim(shown: Document, name: str) -> tuple[str, str]:
    """Return verdict and reason of a claim or recommendation."""
    tables = [one for part in shown.sections for one in part.tables]
    rows = [row for one in tables if one.id in ("claims", "recommendations") for row in one.data]
    found = next(row for row in rows if row["claim"] == name)
    return str(found["verdict"]), str(found["reason"])
