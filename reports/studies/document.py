# SPDX-License-Identifier: Apache-2.0
"""What every rendering shows: sections of tables, answers and remarks. No figure without its kind's word."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hil.model import Kind

NOT_MEASURED = "not measured"
NONE = "–"


Point = tuple[float, float, float | None, float | None]


@dataclass(frozen=True)
class Line:
    """Points (x, y, low, high) of one line; low and high are None where there is no interval."""

    name: str
    style: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Picture:
    """A chart; ``title`` says what y is where the table's title does not, which has the unit.

    With ``stairs`` a line keeps its height until its next point, as a share at or below a value does.
    """

    title: str
    x_label: str
    lines: tuple[Line, ...]
    stairs: bool = False


@dataclass(frozen=True)
class Table:
    """``data`` holds the rows in numbers, for the JSON; ``measured`` says that figures of ours are in it."""

    id: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    data: tuple[Mapping[str, object], ...] = ()
    measured: bool = True
    picture: Picture | None = None


@dataclass(frozen=True)
class Section:
    """``remarks`` are facts about the study; ``answers`` are sentences with figures of ours in them."""

    heading: str
    remarks: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    answers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    """One study on one board. ``measured_on`` says on what; ``warnings`` are of the run as a whole."""

    study: str
    title: str
    run_id: str
    board: str
    target: str
    kind: Kind
    sections: tuple[Section, ...]
    measured_on: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def is_physical(self) -> bool:
        return self.kind == "physical"

    @property
    def headline(self) -> str:
        """Return "esp32-tcpip: published and measured, board v1 (virtual)"."""
        return f"{self.study}: published and measured, board {self.board} ({self.kind})"

    def caption(self, table: Table) -> str:
        """Return a table's title; with the kind where it holds figures of a board that is not physical."""
        return table.title if self.is_physical or not table.measured else f"{table.title} ({self.kind})"

    def said(self, answer: str) -> str:
        """Return a sentence with figures of ours; its first word is the kind unless the board is physical."""
        return answer if self.is_physical else f"{self.kind.capitalize()}: {answer}"


def are_words(table: Table, column: int) -> bool:
    """Return whether a column holds words, which stand left, and no figures nor what stands in for them."""
    cells = [row[column] for row in table.rows if row[column] not in ("", NONE)]
    return bool(cells) and all(
        cell[0].isalpha() and not cell.startswith(("n <", NOT_MEASURED)) for cell in cells
    )


def number(value: float | None) -> str:
    """Write a figure with three significant digits or so; "–" for None, "timeout" where it was never seen."""
    if value is None:
        return NONE
    if math.isinf(value):
        return "timeout"
    size = round(abs(value), 3)
    decimals = 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 1 or size == 0 else 3
    text = f"{value:,.{decimals}f}"
    if not text.strip("-0."):
        return text.lstrip("-")
    return text.rstrip("0").rstrip(".") if decimals == 3 else text


def percent(share: float | None) -> str:
    """Write a ratio as a percentage."""
    if share is None:
        return NONE
    size = abs(share) * 100
    if size in (0, 100):
        return f"{share * 100:.0f} %"
    return f"{share * 100:.{0 if size >= 100 else 1 if size >= 1 or size == 0 else 3}f} %"


def plain(value: object) -> object:
    """Return a value that JSON can hold: infinities are None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value
