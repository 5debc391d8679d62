# SPDX-License-Identifier: Apache-2.0
"""Writes parts as HTML without script: tables that scroll, lines that open."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from hil.reports.view.marks import Dump, Fixed, Line, Link, Mark, Part, Table, Tone, Words, marks

_MOST_LINES = 8  # of a list that stands open; the others open below it
_TONES = {"good": "good", "open": "unsure", "bad": "bad"}


def tone_class(tone: Tone) -> str:
    return _TONES.get(tone, "")


def written(words: Words) -> str:
    return "".join(map(_mark, marks(words)))


def _mark(mark: Mark) -> str:
    if isinstance(mark, str):
        return escape(mark)
    if isinstance(mark, Link):
        inner = written(mark.words)
        return f'<a href="{escape(mark.address)}">{inner}</a>' if mark.address else inner
    text = escape(mark.text)
    if isinstance(mark, Fixed):
        text = text.replace(" ", "\u00a0")  # a phone breaks no unit from its number
        return f'<b class="{tone_class(mark.tone)}">{text}</b>' if mark.tone else text
    return text  # a value is copied as it is


def part_of(part: Part) -> str:
    """Return a part with its heading, one that is folded below a line that opens."""
    heading = written(part.heading)
    body = _body(part, heading)
    if part.folded:
        return f'<details class="more"><summary>{heading}</summary>{body}</details>'
    return f"<h2>{heading}</h2>{body}"


def _body(part: Part, heading: str) -> str:
    if isinstance(part.body, Dump):
        return f"<pre>{escape(part.body.text)}</pre>"
    if isinstance(part.body, Table):
        legend = f'<p class="soft">{escape(part.legend)}</p>' if part.legend else ""
        return _scrolled(part.body, heading) + legend
    open_ = len(part.body) if part.folded else _MOST_LINES
    rest = part.body[open_:]
    more = (
        f'<details class="more"><summary>and {len(rest)} more</summary>{_list(rest)}</details>'
        if rest
        else ""
    )
    return _list(part.body[:open_]) + more


def _list(lines: Sequence[Line]) -> str:
    return f'<ul class="plain">{"".join(f"<li>{line(one)}</li>" for one in lines)}</ul>'


def line(one: Line) -> str:
    """Return a line, which opens where something is behind it."""
    if not one.more:
        return written(one.words)
    behind = "".join(f"<p>{written(more)}</p>" for more in one.more)
    return f"<details><summary>{written(one.words)}</summary>{behind}</details>"


def _scrolled(table: Table, name: str) -> str:
    """Return a table that is scrolled where it is too wide, with the arrow keys too."""
    head = _row("th", table.head, table.left)
    body = "".join(_row("td", cells, table.left) for cells in table.rows)
    rows = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{name}">{rows}</div>'


def _row(tag: str, cells: Sequence[Words], left: int) -> str:
    """Return a row: names stand left and may wrap, figures right; a head without a word is none."""
    kinds = ("" if number < left else ' class="n"' for number in range(len(cells)))
    tags = (tag if cell else "td" for cell in cells)
    found = zip(tags, kinds, map(written, cells), strict=True)
    return f"<tr>{''.join(f'<{name}{kind}>{cell}</{name}>' for name, kind, cell in found)}</tr>"
