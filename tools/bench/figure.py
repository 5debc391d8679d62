# SPDX-License-Identifier: Apache-2.0
"""A figure: what was measured, what is aimed at, and a table of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

SHORT = 12  # characters; such a cell is a figure, which is never cut in two


@dataclass(frozen=True)
class Figure:
    """One printed table. ``missed`` names the aims that were not met; empty where all were.

    Where the aims are ``exact`` (bytes, names) they are of a short pass too; what a clock says never is.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    missed: Sequence[str] = ()
    exact: bool = False


SHORT_PASS = "short pass: not for docs; no aim that a clock or chance decides fails it"


WIDTH = 110  # columns of text at least: tables are read from files as well


def wide_console() -> Console:
    """Return a console in which the widest table fits."""
    return Console(width=max(WIDTH, Console().width))


def fails(figure: Figure, *, short: bool) -> bool:
    """Return whether a figure makes its command fail."""
    return bool(figure.missed) and (figure.exact or not short)


def show(console: Console, figure: Figure) -> None:
    table = Table(title=figure.title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for index, column in enumerate(figure.columns):
        short = all(len(cell) <= SHORT for cell in (column, *(row[index] for row in figure.rows)))
        table.add_column(column, justify="left" if index == 0 else "right", no_wrap=short)
    for row in figure.rows:
        table.add_row(*row)
    console.print(table)
    if figure.note:
        console.print(figure.note, style="dim")
    for aim in figure.missed:
        console.print(f"aim missed: {aim}", style="bold yellow")
    console.print()
