# SPDX-License-Identifier: Apache-2.0
"""Text that somebody else wrote, shown where it must do nothing: on a terminal, in GitHub's Markdown.

A board's name, a fault's sentence or a threshold's reason may come from a fork. On a terminal it could move
the cursor or hide what follows; in a comment it could become a link, an image, a mention or a tag, or end
what it stands in. Each function here is for one target, keeps what a person reads, and returns one line.
"""

from __future__ import annotations

import re
import unicodedata

MOST_CHARACTERS = 400
ZERO_WIDTH_SPACE = "\u200b"

_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # control sequences
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # strings: titles, links
    r"|\x1b[ -/]*[0-~]?"
)
# letters and marks that show nothing: fillers, joiners, variation selectors, the blank of Braille
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_STACKED = re.compile(
    r"((?:[^\W\d_]|.)?)((?:{m}){{4,}})".format(
        m="[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]"
    )
)

_ENTITIES = {character: f"&#{ord(character)};" for character in '&<>"\\`*[]|~!^{}@#'}
_LONE_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
# what means something at the start of a line only
_LIST_OR_RULE = re.compile(r"(?:[-+](?=\s|$)|-(?=[-\s]*$)|=(?==*\s*$)|\d+(?=[.)](?:\s|$)))")
# after each of these GitHub may find a mention, a reference, a link or an emoji
_BREAKS = (
    re.compile(r"(?<=[@#])(?=\S)"),
    re.compile(r"(?<=:)(?=\S)"),
    re.compile(r"(?<=\S)(?=:)"),
    re.compile(r"(?<=[A-Za-z]-)(?=\d)"),  # GH-1, CVE-2020-1, a tracker's keys
    re.compile(r"(?i)(?<=www)(?=\.)"),
    re.compile(r"(?i)(?<=ghsa)(?=-)"),
    re.compile(r"(?<=[0-9A-Fa-f]{6})(?=[0-9A-Fa-f])"),  # what could be a commit
    re.compile(r"(?<=\S{40})(?=\S)"),  # a table's cell may break there
)


def visible(text: object, most: int = MOST_CHARACTERS) -> str:
    """Return what a person would read, in one line: no control, escape, direction or zero-width characters.

    Longer than ``most`` characters, it is cut, which "…" shows.
    """
    shown = _ANSI.sub("", str(text)[: 20 * most])
    shown = "".join(" " if unicodedata.category(one) in _INVISIBLE else one for one in _BLANK.sub(" ", shown))
    shown = " ".join(_STACKED.sub(lambda found: found[1] + found[2][:3], shown).split())
    return shown if len(shown) <= most else f"{shown[: most - 1].rstrip()}…"


def terminal(text: object, most: int = MOST_CHARACTERS) -> str:
    """Return ``text`` for a terminal: it cannot move, colour, rename or hide anything."""
    return visible(text, most)


def terminal_page(text: str) -> str:
    """Return a page of ``text`` for a terminal, its lines kept; tabs become spaces."""
    return "\n".join(_line(line) for line in text.split("\n"))


def _line(line: str) -> str:
    shown = _ANSI.sub("", line)
    return "".join(" " if unicodedata.category(one) in _INVISIBLE else one for one in shown).rstrip()


def markdown(text: object, most: int = MOST_CHARACTERS) -> str:
    """Return ``text`` for a line, a list's item or a table's cell of GitHub's Markdown: words, and no more.

    Zero-width spaces stand where GitHub would find a mention, a reference or a link in plain words. A dollar
    sign, which nothing keeps from being a formula's, becomes its wide form.
    """
    shown = visible(text, most).replace("$", "＄")
    cuts = sorted({found.start() for pattern in _BREAKS for found in pattern.finditer(shown)})
    pieces = [shown[start:end] for start, end in zip([0, *cuts], [*cuts, len(shown)], strict=True)]
    escaped = [_escaped(shown, piece, start) for piece, start in zip(pieces, [0, *cuts], strict=True)]
    return _at_start(ZERO_WIDTH_SPACE.join(escaped))


def _escaped(whole: str, piece: str, start: int) -> str:
    lone = {found.start() for found in _LONE_UNDERSCORE.finditer(whole)}
    return "".join(
        "&#95;" if one == "_" and start + n in lone else _ENTITIES.get(one, one)
        for n, one in enumerate(piece)
    )


def _at_start(line: str) -> str:
    found = _LIST_OR_RULE.match(line)
    if not found:
        return line
    if found[0].isdigit():
        return f"{found[0]}&#{ord(line[found.end()])};{line[found.end() + 1 :]}"
    return f"&#{ord(found[0])};{line[1:]}"


def code(text: object, most: int = 120) -> str:
    """Return ``text`` as a code span, also in a table's cell: a bar, which would end the cell, is broken."""
    shown = visible(text, most).replace("|", "¦") or "–"
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def fenced(text: str) -> str:
    """Return a page of ``text`` as a block of code, which nothing in it can end."""
    page = terminal_page(text)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", page)), default=0))
    return f"{fence}text\n{page}\n{fence}"
