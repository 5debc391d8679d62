# SPDX-License-Identifier: Apache-2.0
"""A study as Markdown: reproduction-<study>.md in the run's folder.

A study on the terminal, at most 100 columns wide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table as RichTable
from rich.text import Text

from hil.reports.kinds import kind_remark
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import Document, Section, Table, are_words


def render_markdown(study: Study, documents: Sequence[Document], *, run_id: str) -> str:
    """Return reproduction-<study>.md: the study, then one part a board."""
    remark = kind_remark(document.kind for document in documents)
    parts = [
        f"# {study.id}: published and measured",
        f"{study.title}. {', '.join(study.authors)}, {study.year}; {study.source}.",
        f"Run `{run_id}`.",
        *([f"> {remark}"] if remark else []),
        _list("Setup as published", study.setup),
        *([_list("Not repeated", study.excluded)] if study.excluded else []),
    ]
    for document in documents:
        parts += [f"## Board {document.board} ({document.kind}, {document.target})"]
        parts += [_escape(document.measured_on)] if document.measured_on else []
        parts += [f"> ⚠ {_escape(warning)}" for warning in document.warnings]
        for section in document.sections:
            parts += _markdown_section(document, section)
    return "\n\n".join(parts) + "\n"


def _markdown_section(document: Document, section: Section) -> Iterable[str]:
    yield f"### {section.heading}"
    if section.remarks:
        yield "\n".join(f"{remark}  " for remark in section.remarks)
    for table in section.tables:
        yield f"**{document.caption(table)}**"
        yield _markdown_table(table)
        if table.notes:
            yield "\n".join(f"- {_escape(note)}" for note in table.notes)
    if section.answers:
        yield "\n".join(f"- {_escape(document.said(answer))}" for answer in section.answers)
    if section.warnings:
        yield "\n".join(f"> ⚠ {_escape(document.said(warning))}" for warning in section.warnings)


def _markdown_table(table: Table) -> str:
    lines = [_row(table.columns), _row(["---", *["---:"] * (len(table.columns) - 1)])]
    return "\n".join([*lines, *map(_row, table.rows)])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_escape, cells))} |"


def _escape(text: str) -> str:
    return text.replace("|", "/").replace("<", "&lt;")


def _list(heading: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{heading}:", "", *(f"- {line}" for line in lines)])


WIDTH = 100
_WIDE_COLUMNS = 5  # where there are more, words may not stretch the first column
_FIRST_WIDTH = 26
_SHORT_HEADING = 8


def print_documents(documents: Sequence[Document], console: Console) -> None:
    """Print each board's document, never wider than WIDTH; as wide as that where output is no terminal."""
    if not console.is_terminal:
        console = Console(file=console.file, width=WIDTH, highlight=False)
    for document in documents:
        for part in _parts(document):
            console.print(part, width=min(console.width, WIDTH))


def _parts(document: Document) -> Iterable[RenderableType]:
    yield Text()
    yield Rule(Text(f" {document.headline} ", style="bold"), style="dim")
    if document.measured_on:
        yield Text(document.measured_on, style="dim")
    for warning in document.warnings:
        yield Text.assemble(("? ", "yellow"), warning)
    for section in document.sections:
        yield from _section(document, section)


def _section(document: Document, section: Section) -> Iterable[RenderableType]:
    yield Text(f"\n{section.heading}", style="bold underline")
    for remark in section.remarks:
        yield Text(remark, style="dim")
    for table in section.tables:
        yield from _table(document, table)
    for answer in section.answers:
        yield Text.assemble(("→ ", "bold cyan"), document.said(answer))
    for warning in section.warnings:
        yield Text.assemble(("? ", "yellow"), document.said(warning))


def _table(document: Document, table: Table) -> Iterable[RenderableType]:
    shown = RichTable(box=None, padding=(0, 1, 0, 0), header_style="dim", expand=False)
    for number, name in enumerate(table.columns):
        wordy = any(len(row[number]) > _FIRST_WIDTH for row in table.rows)
        if number == 0:
            most = _FIRST_WIDTH if len(table.columns) > _WIDE_COLUMNS else 48
            shown.add_column(name, overflow="fold", max_width=most)
        elif wordy:
            shown.add_column(name, overflow="fold")
        else:  # a figure stays whole; what is too wide is the words' to give way
            side: JustifyMethod = "left" if are_words(table, number) else "right"
            shown.add_column(_two_lines(name), justify=side, no_wrap=True)
    for row in table.rows:
        shown.add_row(*map(Text, row))
    yield Padding(Text(document.caption(table), style="bold"), (1, 0, 0, 0))
    yield shown
    for note in table.notes:
        yield Padding(Text(note, style="dim"), (0, 0, 0, 2))


def _two_lines(name: str) -> str:
    """Break a long heading at the space nearest to its middle."""
    spaces = [place for place, character in enumerate(name) if character == " "]
    if not spaces or len(name) <= _SHORT_HEADING:
        return name
    middle = min(spaces, key=lambda place: abs(2 * place - len(name)))
    return f"{name[:middle]}\n{name[middle + 1 :]}"
