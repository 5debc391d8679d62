# SPDX-License-Identifier: Apache-2.0
"""A study as one HTML page that asks no other host for anything and needs no script.

A small SVG chart: lines with intervals, without scripts, in the colours of the report's style.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from xml.etree.ElementTree import SubElement

from hil.reports.kinds import kind_remark
from hil.reports.page import frame
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import Document, Line, Picture, Section, Table, are_words, number
from hil.reports.svg import Axis, Svg

WIDTH, HEIGHT = 460, 230
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 38
_TICKS = 5


def render_chart(picture: Picture, caption: str) -> str:
    """Return a figure with a legend; y begins at zero."""
    points = [point for line in picture.lines for point in line.points]
    across = Axis(0, _round_up(max(x for x, *_ in points)), LEFT, WIDTH - RIGHT)
    most_y = max(max(y, high or 0.0) for _, y, _, high in points) or 1.0
    up = Axis(0, _round_up(most_y), HEIGHT - BOTTOM, TOP)
    svg = Svg(WIDTH, HEIGHT, aria_label=caption)
    _draw_axes(svg, across, up, picture.x_label)
    draw = _draw_stairs if picture.stairs else _draw_line
    for number_before, line in enumerate(picture.lines):
        draw(svg, across, up, line, dashes="6 5" if number_before else "")
    legend = "".join(f'<li class="{line.style}"><i></i>{escape(line.name)}</li>' for line in picture.lines)
    title = f" <small>{escape(picture.title)}</small>" if picture.title else ""
    return (
        f"<figure><figcaption>{escape(caption)}{title}</figcaption>"
        f'<ul class="legend">{legend}</ul>'
        f"{svg.to_text()}</figure>"
    )


def _draw_axes(svg: Svg, across: Axis, up: Axis, x_label: str) -> None:
    for tick in range(_TICKS + 1):
        y, x = up.high * tick / _TICKS, across.high * tick / _TICKS
        svg.add("path", class_="grid", d=f"M{LEFT} {up.px(y):.1f}H{WIDTH - RIGHT}")
        svg.add("text", _tick(y), class_="e", x=LEFT - 6, y=up.px(y) + 4)
        svg.add("text", _tick(x), class_="m", x=across.px(x), y=HEIGHT - BOTTOM + 16)
    svg.add("text", x_label, class_="m u", x=(LEFT + WIDTH - RIGHT) / 2, y=HEIGHT - 6)


def _draw_line(svg: Svg, across: Axis, up: Axis, line: Line, dashes: str) -> None:
    """Draw a line; one that others come before has ``dashes``, so that they are seen where all coincide."""
    style = f"line {line.style}"
    svg.polyline(
        [(across.px(x), up.px(y)) for x, y, *_ in line.points], class_=style, stroke_dasharray=dashes
    )
    for x, y, low, high in line.points:
        if low is not None and high is not None:
            svg.add("path", class_=style, d=f"M{across.px(x):.1f} {up.px(low):.1f}V{up.px(high):.1f}")
        dot = svg.add("circle", class_=line.style, cx=across.px(x), cy=up.px(y), r=3)
        SubElement(dot, "title").text = f"{line.name}: {number(y)} at {_tick(x)}"


def _draw_stairs(svg: Svg, across: Axis, up: Axis, line: Line, dashes: str) -> None:
    """Draw a line that rises from 0 at each of its points, and goes on to the right end."""
    steps = "".join(f"H{across.px(x):.1f}V{up.px(y):.1f}" for x, y, *_ in line.points)
    path = f"M{LEFT} {up.start_px:.1f}{steps}H{WIDTH - RIGHT}"
    svg.add("path", class_=f"line {line.style}", d=path, stroke_dasharray=dashes)


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
