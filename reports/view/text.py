# SPDX-License-Identifier: Apache-2.0
"""Writes parts for a terminal, which obeys nothing in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from hil.base.untrusted import terminal, terminal_page
from hil.reports.view.marks import Dump, Fixed, Mark, Part, Table, Words, marks, plain

MOST_CHARACTERS = 4_000  # of a sentence: what a person reads is not cut
COLOURS = {"good": "green", "open": "yellow", "bad": "bold red", "": ""}
# by the name of a part: how its lines begin
SIGNS = {
    "wrong": ("! ", "bold yellow"),
    "losses": ("→ ", "cyan"),
    "traces": ("→ ", "cyan"),
    "planted": ("→ ", "cyan"),
    "not run": ("– not run: ", "dim"),
    "ruled out": ("– ruled out: ", "dim"),
    "sentences": ("– ", ""),
}


def written(words: Words) -> str:
    return terminal(plain(words), MOST_CHARACTERS)


def line(words: Words, sign: str = "? ", style: str = "yellow") -> Text:
    return Text.assemble((sign, style), written(words))


def lines_of(part: Part) -> list[Text]:
    """Return the lines of a list; a note on a metric begins with its own sign."""
    assert isinstance(part.body, tuple)
    sign = SIGNS.get(part.name, ("? ", "yellow"))
    return [line(one.words, *(("", "") if part.name == "notes" and one.more else sign)) for one in part.body]


def whole(part: Part, width: int) -> Iterator[RenderableType]:
    """Yield a part with all that is folded elsewhere."""
    if isinstance(part.body, tuple):
        for text, one in zip(lines_of(part), part.body, strict=True):
            yield text
            yield from (Text(f"  {written(more)}", style="dim") for more in one.more)
        return
    yield Text(written(part.heading), style="bold")
    if isinstance(part.body, Dump):
        yield Text(terminal_page(part.body.text))
    else:
        yield Padding(_table(part.body, width), (0, 0, 1, 0))


def _table(table: Table, width: int) -> RenderableType:
    """Return a table; where it is too wide, of each row the names on a line, its figures below."""
    rows = [[_cell(cell) for cell in cells] for cells in table.rows]
    columns = zip(table.head, *rows, strict=True)
    if sum(1 + max(cell_len(str(cell)) for cell in column) for column in columns) > width:
        return Group(*(line for cells in rows for line in _stacked(table, cells)))
    grid = Grid(box=None, padding=(0, 1, 0, 0), header_style="dim", expand=False)
    for number, name in enumerate(table.head):
        grid.add_column(name, justify="left" if number < table.left else "right", no_wrap=True)
    for cells in rows:
        grid.add_row(*cells)
    return grid


def _stacked(table: Table, cells: Sequence[Text]) -> list[Text]:
    figures = zip(table.head[table.left :], cells[table.left :], strict=True)
    words = [Text.assemble((f"{name}: ", "dim"), cell) for name, cell in figures if str(cell) != "–"]
    below = [Text.assemble("  ", Text("; ").join(words))] if words else []
    return [Text("  ").join(cells[: table.left]), *below]


def _cell(words: Words) -> Text:
    return Text.assemble(*map(_mark, marks(words)))


def _mark(mark: Mark) -> tuple[str, str]:
    style = COLOURS[mark.tone] if isinstance(mark, Fixed) else ""
    text = plain(mark)
    before, after = text[:1].isspace(), text[-1:].isspace()
    return f"{' ' * before}{written(text)}{' ' * (after and bool(text.strip()))}", style
