"""CSV that a spreadsheet takes as it is: numbers as numbers, and no text that it would run as a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

Value = str | int | float | bool | None
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # how a cell begins that a spreadsheet computes
_DIGITS = 10


def to_csv(columns: Sequence[str], lines: Iterable[Sequence[Value]]) -> bytes:
    """Return a heading and the lines: UTF-8, commas, LF. Text that begins like a formula gets a ' first."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([[cell(value) for value in line] for line in lines])
    return stream.getvalue().encode("utf-8", "backslashreplace")


def cell(value: Value) -> str:
    """Return a value as a cell: nothing for None, 1 or 0 for a bool, ten digits for a float."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    if isinstance(value, int):
        return str(value)
    return f"'{value}" if value.startswith(_FORMULA) else value
