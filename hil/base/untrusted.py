# SPDX-License-Identifier: Apache-2.0
"""Text that somebody else wrote, shown where it must do nothing: on a terminal, in GitHub's Markdown.

A board's name, a fault's sentence or a threshold's reason may come from a fork. On a terminal it could move
the cursor or hide what follows; in a comment it could become a link, an image, a mention or a tag, or end
what it stands in. Each function here is for one target, keeps what a person reads, and returns one line.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from html import escape

MOST_CHARACTERS = 400
MOST_OF_A_VALUE = 1000  # characters, more than any of ours has: what is cut cannot be pasted

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
# a word in which GitHub may find a mention, a reference, a link, an emoji or a formula
_REFERENCE = re.compile(
    r"[@#:](?=\S)|\$|www\.|ghsa-"
    r"|[a-z]-\d"  # GH-1, CVE-2020-1, a tracker's keys
    r"|(?<![a-z0-9])[0-9a-f]{7,}(?![a-z0-9])",  # what could be a commit
    re.IGNORECASE,
)
_WORD = re.compile(r"[^ |`]+|[|`]")
_OPENING, _CLOSING = "('\"[", ")]'\".,;:!?"  # what stands round a word and is none of it


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

    A word in which GitHub would find a mention, a reference or a link becomes a code span, where it looks for
    nothing. So nothing is added that a person would copy with it.
    """
    return _at_start(_by_word(visible(text, most), _escaped, lambda word: code(word, most)))


def title(text: object, most: int = MOST_CHARACTERS) -> str:
    """Return ``text`` for a line of <summary>, where Markdown is no markup."""
    return _by_word(visible(text, most), escape, lambda word: f"<code>{escape(word)}</code>")


def _by_word(shown: str, plain: Callable[[str], str], quoted: Callable[[str], str]) -> str:
    """Return a text whose words are ``quoted`` where GitHub would find something in them, else ``plain``."""

    def written(found: re.Match[str]) -> str:
        word = found[0].lstrip(_OPENING).rstrip(_CLOSING)
        if not word or not _REFERENCE.search(found[0]):
            return plain(found[0])
        before, _, after = found[0].partition(word)
        return f"{plain(before)}{quoted(word)}{plain(after)}"

    return _WORD.sub(written, shown)


def _escaped(text: str) -> str:
    found = "".join(_ENTITIES.get(one, one) for one in text)
    return _LONE_UNDERSCORE.sub("&#95;", found)


def _at_start(line: str) -> str:
    found = _LIST_OR_RULE.match(line)
    if not found:
        return line
    if found[0].isdigit():
        return f"{found[0]}&#{ord(line[found.end()])};{line[found.end() + 1 :]}"
    return f"&#{ord(found[0])};{line[1:]}"


def code(text: object, most: int = MOST_OF_A_VALUE) -> str:
    """Return a value as a code span, to be copied: a commit, a time, a case, a board, a path, a command.

    Nothing in it ends the span. A bar, which no value of ours has, would end a table's cell and is broken.
    """
    shown = visible(text, most).replace("|", "¦") or "–"
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def fenced(text: str) -> str:
    """Return a page of ``text`` as a block of code, which nothing in it can end."""
    page = terminal_page(text)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", page)), default=0))
    return f"{fence}text\n{page}\n{fence}"
