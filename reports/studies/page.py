# SPDX-License-Identifier: Apache-2.0
"""A study as one HTML page that asks no other host for anything and needs no script.

A small SVG chart: lines with intervals, without scripts, in the colours of the report's style.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from hil.reports.kinds import kind_remark
from hil.reports.page import frame
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import Document, Line, Picture, Section, Table, are_words, number

WIDTH, HEIGHT = 460, 230
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 38
_TICKS = 5


def render_chart(picture: Picture, caption: str) -> str:
    """Return a figure with a legend; y begins at zero."""
    points = [point for line in picture.lines for point in line.points]
    most_x = max(x for x, *_ in points)
    most_y = max(max(y, high or 0.0) for _, y, _, high in points) or 1.0
    scale = _Scale(_round_up(most_x), _round_up(most_y))
    draw = _stairs if picture.stairs else _line
    body = [*_axes(scale, picture), *(draw(scale, line, n) for n, line in enumerate(picture.lines))]
    legend = "".join(f'<li class="{line.style}"><i></i>{escape(line.name)}</li>' for line in picture.lines)
    title = f" <small>{escape(picture.title)}</small>" if picture.title else ""
    return (
        f"<figure><figcaption>{escape(caption)}{title}</figcaption>"
        f'<ul class="legend">{legend}</ul>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(caption)}">{"".join(body)}</svg>'
        "</figure>"
    )


class _Scale:
    """From figures to places; both axes begin at zero."""

    def __init__(self, most_x: float, most_y: float) -> None:
        self.most_x, self.most_y = most_x, most_y

    def x(self, value: float) -> float:
        return round(LEFT + value / self.most_x * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        return round(HEIGHT - BOTTOM - value / self.most_y * (HEIGHT - TOP - BOTTOM), 1)


def _axes(scale: _Scale, picture: Picture) -> list[str]:
    parts = []
    for tick in range(_TICKS + 1):
        y, x = scale.most_y * tick / _TICKS, scale.most_x * tick / _TICKS
        parts.append(f'<path class="grid" d="M{LEFT} {scale.y(y)}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="e" x="{LEFT - 6}" y="{scale.y(y) + 4}">{_tick(y)}</text>')
        parts.append(f'<text class="m" x="{scale.x(x)}" y="{HEIGHT - BOTTOM + 16}">{_tick(x)}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text class="m u" x="{middle}" y="{HEIGHT - 6}">{escape(picture.x_label)}</text>')
    return parts


def _line(scale: _Scale, line: Line, number_before: int) -> str:
    """Draw a line; one that others come before is dashed, so that they are seen where all coincide."""
    places = [(scale.x(x), scale.y(y)) for x, y, *_ in line.points]
    parts = [f'<path class="line" d="M{" L".join(f"{x} {y}" for x, y in places)}"{_dashes(number_before)}/>']
    for (x, y, low, high), (left, top) in zip(line.points, places, strict=True):
        if low is not None and high is not None:
            parts.append(f'<path class="line" d="M{left} {scale.y(low)}V{scale.y(high)}"/>')
        tip = f"{line.name}: {number(y)} at {_tick(x)}"
        parts.append(f'<circle cx="{left}" cy="{top}" r="3"><title>{escape(tip)}</title></circle>')
    return f'<g class="{line.style}">{"".join(parts)}</g>'


def _stairs(scale: _Scale, line: Line, number_before: int) -> str:
    """Draw a line that rises from 0 at each of its points, and goes on to the right end."""
    steps = "".join(f"H{scale.x(x)}V{scale.y(y)}" for x, y, *_ in line.points)
    path = f"M{LEFT} {scale.y(0)}{steps}H{WIDTH - RIGHT}"
    return f'<g class="{line.style}"><path class="line" d="{path}"{_dashes(number_before)}/></g>'


def _dashes(number_before: int) -> str:
    return ' stroke-dasharray="6 5"' if number_before else ""


def _tick(value: float) -> str:
    return f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def _round_up(value: float) -> float:
    """Return a round number, the next one above."""
    step = 10.0 ** math.floor(math.log10(value)) / 2
    return math.ceil(value / step) * step


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
    if remark := kind_remark(document.kind for document in documents):
        yield f'<p class="remark">{escape(remark)}</p>'
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
