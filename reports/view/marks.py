# SPDX-License-Identifier: Apache-2.0
"""What a page holds before it is written for a target: plain words with marks, lines, tables, parts.

Nothing here is escaped: a renderer does that, and each renderer is for one target.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Tone = Literal["", "good", "open", "bad"]  # green, amber, red


@dataclass(frozen=True)
class Code:
    """A value to be copied: a commit, a board, a case, a command."""

    text: str


@dataclass(frozen=True)
class Fixed:
    """A figure with its unit, or a sign: no line ends within; it is strong where it has a tone."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True)
class Link:
    """Words that lead to an address of ours; without an address they are words."""

    words: Words
    address: str


Mark = str | Code | Fixed | Link
Words = Mark | tuple[Mark, ...]


@dataclass(frozen=True)
class Line:
    """A line of a list, and what is behind it."""

    words: Words
    more: tuple[Words, ...] = ()


@dataclass(frozen=True)
class Table:
    """Rows below a head; the first ``left`` columns hold names, the others figures."""

    head: tuple[str, ...]
    rows: tuple[tuple[Words, ...], ...]
    left: int = 3


@dataclass(frozen=True)
class Dump:
    """A text whose lines stay as they are."""

    text: str


@dataclass(frozen=True)
class Part:
    """A part of a page, by its ``name``. The lower ``rank``, the later it is cut for length.

    ``noun`` is what a row is. What is ``folded`` opens below its heading; ``legend`` explains signs.
    """

    name: str
    heading: Words
    body: Table | Dump | tuple[Line, ...]
    rank: int
    noun: str = "line"
    folded: bool = False
    legend: str = ""


def marks(words: Words) -> tuple[Mark, ...]:
    return words if isinstance(words, tuple) else (words,)


def plain(words: Words) -> str:
    """Return the words without their marks."""
    return "".join(
        one if isinstance(one, str) else plain(one.words) if isinstance(one, Link) else one.text
        for one in marks(words)
    )


def listed(items: Iterable[Words], between: str = ", ") -> tuple[Mark, ...]:
    """Return the items as one enumeration."""
    found = [mark for item in items for mark in (between, *marks(item))]
    return tuple(found[1:])


def count(number: int, noun: str) -> str:
    """Return "1 case", "2,000 cases"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
