"""A study as one HTML page that asks no other host for anything and needs no script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from hil.reports.page import frame
from hil.reports.rows import VIRTUAL_REMARK
from hil.reports.studies.chart import render_chart
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import Document, Section, Table, are_words

_OWN_STYLE = """
h3 { font-size: 14px; margin: 18px 0 6px; }
td, th { vertical-align: top; } td.w { min-width: 16ch; }
ul.notes { margin: 6px 0 0; padding-left: 18px; font-size: 12.5px; color: var(--soft); }
ul.notes { overflow-wrap: anywhere; }
.answer { border-left: 3px solid var(--link); padding: 2px 10px; margin: 8px 0; }
figure { margin: 12px 0; }
"""


def render_page(study: Study, documents: Sequence[Document], *, run_id: str) -> str:
    """Return the page. Its way back leads to the report's first page, from runs/<run id>/."""
    kinds = ", ".join(sorted({document.kind for document in documents}))
    title = f"Study {study.id}: published and measured ({kinds})"
    back = '<nav><a href="../../index.html">← Verdict</a></nav>'
    return frame(title, [back, *_body(study, documents, title, run_id)], more_style=_OWN_STYLE)


def _body(study: Study, documents: Sequence[Document], title: str, run_id: str) -> Iterable[str]:
    yield f"<h1>{escape(title)}</h1>"
    authors = f"{', '.join(study.authors)}, {study.year}"
    yield f"<p>{escape(study.title)}. {escape(authors)}; {escape(study.source)}.</p>"
    yield f'<p class="soft">Run {escape(run_id)}</p>'
    if any(document.kind == "virtual" for document in documents):
        yield f'<p class="remark">{escape(VIRTUAL_REMARK)}</p>'
    yield _notes("Setup as published", study.setup)
    yield _notes("Not repeated", study.excluded)
    for document in documents:
        if len(documents) > 1:
            yield f"<h1>{escape(document.headline)}</h1>"
        if document.measured_on:
            yield f'<p class="soft">{escape(document.measured_on)}</p>'
        for warning in document.warnings:
            yield f'<p class="remark">{escape(warning)}</p>'
        for section in document.sections:
            yield from _section(document, section)


def _section(document: Document, section: Section) -> Iterable[str]:
    yield f"<h2>{escape(section.heading)}</h2>"
    for remark in section.remarks:
        yield f'<p class="soft">{escape(remark)}</p>'
    for table in section.tables:
        caption = document.caption(table)
        yield f"<h3>{escape(caption)}</h3>"
        yield _table(table)
        if table.notes:
            yield f'<ul class="notes">{"".join(f"<li>{escape(note)}</li>" for note in table.notes)}</ul>'
        if table.picture:
            yield render_chart(table.picture, caption)
    for answer in section.answers:
        yield f'<p class="answer">{escape(document.said(answer))}</p>'
    for warning in section.warnings:
        yield f'<p class="remark">{escape(document.said(warning))}</p>'


def _table(table: Table) -> str:
    wordy = [any(len(row[n]) > _WORDS for row in table.rows) for n in range(len(table.columns))]
    classes = [
        "w" if wide or number == 0 else "" if are_words(table, number) else "n"
        for number, wide in enumerate(wordy)
    ]
    head = _row("th", table.columns, classes)
    body = "".join(_row("td", row, classes) for row in table.rows)
    return f'<div class="scroll"><table><thead>{head}</thead><tbody>{body}</tbody></table></div>'


_WORDS = 34  # a cell that is longer holds words, which stand left and may wrap


def _row(tag: str, cells: Sequence[str], classes: Sequence[str]) -> str:
    pairs = zip(cells, classes, strict=True)
    inside = "".join(f'<{tag} class="{name}">{escape(cell)}</{tag}>' for cell, name in pairs)
    return f"<tr>{inside}</tr>"


def _notes(heading: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    return f'<p class="soft">{escape(heading)}: {escape("; ".join(lines))}.</p>'
