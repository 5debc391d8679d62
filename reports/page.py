# SPDX-License-Identifier: Apache-2.0
"""The frame of a page of the report: one style, no script, nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

STYLE = Path(__file__).parent / "site" / "style.css"
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def frame(title: str, body: Iterable[str], *, more_style: str = "") -> str:
    """Return a page of ``body`` (HTML; empty parts are left out). Its policy allows its own style only."""
    style = STYLE.read_text(encoding="utf-8") + more_style
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    return _PAGE.format(policy=policy, title=escape(title), style=style, body="\n".join(filter(None, body)))


MOST_NAMED = 8


class Markup(str):
    """Text that is HTML already."""


def safe(text: str) -> str:
    """Return text as HTML; what is HTML already stays."""
    return text if isinstance(text, Markup) else escape(text)


def bold(text: str, tone: str) -> Markup:
    return Markup(f'<b class="{tone}">{escape(text)}</b>')


def count(number: int, tone: str) -> str:
    """Return a number that stands out unless it is zero."""
    return bold(str(number), tone) if number else "0"


def link(address: str, text: str) -> str:
    """Return ``text`` linked to ``address`` where there is one."""
    return Markup(f'<a href="{escape(address)}">{escape(text)}</a>') if address else text


def details(line: str, sentences: Iterable[str], more: str = "") -> Markup:
    """Return a line that opens to its sentences; ``more`` stands behind them."""
    inside = "".join(f"<p>{safe(sentence)}</p>" for sentence in sentences)
    tail = f"<p>{safe(more)}</p>" if more else ""
    return Markup(f"<details><summary>{escape(line)}</summary>{inside}{tail}</details>")


def items(heading: str, lines: Sequence[str], *, most: int = MOST_NAMED) -> str:
    """Return a list under a heading, "" where it would be empty; what is beyond ``most`` is counted."""
    if not lines:
        return ""
    found = [f"<li>{safe(line)}</li>" for line in lines[:most]]
    more = len(lines) - most
    found += [f'<li class="soft">and {more} more, in the test report</li>'] if more > 0 else []
    return f'<h2>{escape(heading)}</h2><ul class="plain">{"".join(found)}</ul>'


def listed(title: str, lines: Sequence[str]) -> str:
    """Return a list that opens below a line with its number; "" where it would be empty."""
    if not lines:
        return ""
    found = "".join(f"<li>{safe(line)}</li>" for line in lines)
    return (
        f'<details class="more"><summary>{escape(title)}: {len(lines)}</summary>'
        f'<ul class="plain">{found}</ul></details>'
    )


def explained(title: str, words: str) -> str:
    """Return words that open below a line."""
    return f'<details class="more soft"><summary>{escape(title)}</summary><p>{escape(words)}</p></details>'


def table(heading: str, head: str, lines: Sequence[str]) -> str:
    return f"<h2>{escape(heading)}</h2>{scrolled(heading, head, lines)}"


def folded(title: str, head: str, lines: Sequence[str]) -> str:
    """Return a table that opens under a line."""
    return f'<details class="more"><summary>{escape(title)}</summary>{scrolled(title, head, lines)}</details>'


def scrolled(name: str, head: str, lines: Sequence[str]) -> str:
    """Return a table that is scrolled where it is too wide, with the arrow keys too."""
    body = f"<table><thead>{head}</thead><tbody>{''.join(lines)}</tbody></table>"
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(name)}">{body}</div>'


def row(tag: str, cells: Iterable[str], *, names: int = 2) -> str:
    """Return a table row; the first ``names`` cells stand left and may wrap, counts right."""
    texts = [safe(cell) for cell in cells]
    left = "".join(f"<{tag}>{cell}</{tag}>" for cell in texts[:names])
    right = "".join(f'<{tag} class="n">{cell}</{tag}>' for cell in texts[names:])
    return f"<tr>{left}{right}</tr>"
