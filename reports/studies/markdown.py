"""A study as Markdown: reproduction-<study>.md in the run's folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hil.reports.rows import VIRTUAL_REMARK
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import Document, Section, Table


def render_markdown(study: Study, documents: Sequence[Document], *, run_id: str) -> str:
    """Return reproduction-<study>.md: the study, then one part a board."""
    parts = [
        f"# {study.id}: published and measured",
        f"{study.title}. {', '.join(study.authors)}, {study.year}; {study.source}.",
        f"Run `{run_id}`.",
        *([f"> {VIRTUAL_REMARK}"] if any(document.kind == "virtual" for document in documents) else []),
        _list("Setup as published", study.setup),
        *([_list("Not repeated", study.excluded)] if study.excluded else []),
    ]
    for document in documents:
        parts += [f"## Board {document.board} ({document.kind}, {document.target})"]
        parts += [_escape(document.measured_on)] if document.measured_on else []
        parts += [f"> ⚠ {_escape(warning)}" for warning in document.warnings]
        for section in document.sections:
            parts += _section(document, section)
    return "\n\n".join(parts) + "\n"


def _section(document: Document, section: Section) -> Iterable[str]:
    yield f"### {section.heading}"
    if section.remarks:
        yield "\n".join(f"{remark}  " for remark in section.remarks)
    for table in section.tables:
        yield f"**{document.caption(table)}**"
        yield _table(table)
        if table.notes:
            yield "\n".join(f"- {_escape(note)}" for note in table.notes)
    if section.answers:
        yield "\n".join(f"- {_escape(document.said(answer))}" for answer in section.answers)
    if section.warnings:
        yield "\n".join(f"> ⚠ {_escape(document.said(warning))}" for warning in section.warnings)


def _table(table: Table) -> str:
    lines = [_row(table.columns), _row(["---", *["---:"] * (len(table.columns) - 1)])]
    return "\n".join([*lines, *map(_row, table.rows)])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_escape, cells))} |"


def _escape(text: str) -> str:
    return text.replace("|", "/").replace("<", "&lt;")


def _list(heading: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{heading}:", "", *(f"- {line}" for line in lines)])
