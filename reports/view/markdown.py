# SPDX-License-Identifier: Apache-2.0
"""Writes parts as GitHub's Markdown, in a number of characters: cut between rows, with what was left out."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hil.base import untrusted
from hil.reports.view.marks import Code, Dump, Fixed, Line, Mark, Part, Table, Words, marks, plain

MOST_CHARACTERS = 4_000  # of a sentence: what a person reads is not cut
_MOST_OF_A_FIGURE = 60
_NO_BREAK = "\u00a0"  # a browser copies it as a space


def written(words: Words, most: int = MOST_CHARACTERS) -> str:
    """Return words for a line, an item or a cell.

    Texts side by side are one text, for two that are harmless may be a mention together.
    """
    groups = itertools.groupby(marks(words), key=lambda mark: isinstance(mark, str))
    merged = ([plain(tuple(group))] if is_text else list(group) for is_text, group in groups)
    return "".join(_mark(mark, most) for group in merged for mark in group)


def _mark(mark: Mark, most: int) -> str:
    if isinstance(mark, str):
        inner = untrusted.markdown(mark, most)
        before, after = mark[:1].isspace(), mark[-1:].isspace()
        return f"{' ' * before}{inner}{' ' * (after and bool(inner))}"
    if isinstance(mark, Code):
        return untrusted.code(mark.text)
    if isinstance(mark, Fixed):
        text = untrusted.markdown(mark.text, _MOST_OF_A_FIGURE).replace(" ", _NO_BREAK)
        return f"**{text}**" if mark.tone else text
    return f"[{written(mark.words, most)}]({mark.address})" if mark.address else written(mark.words, most)


@dataclass(frozen=True)
class Block:
    """A piece of a page: ``rows`` below ``head``, which may be cut. ``title`` opens what is folded."""

    head: str
    rows: tuple[str, ...] = ()
    rank: int = 0
    noun: str = "row"
    title: str = ""
    foot: str = ""

    def cut(self, kept: int) -> str:
        """Return the block with its first rows only."""
        left = len(self.rows) - kept
        nouns = self.noun if left == 1 else f"{self.noun}s"
        more = f"… and {left:,} more {nouns}, left out here for their length." if left else ""
        body = "\n".join(filter(None, (self.head, *self.rows[:kept])))
        body = "\n\n".join(filter(None, (body, more, self.foot)))
        return f"<details><summary>{self.title}</summary>\n\n{body}\n\n</details>" if self.title else body


def block_of(part: Part, heading: str = "## {}", most: int = MOST_CHARACTERS) -> Block:
    """Return a part as a block; ``heading`` is the form of what is not folded.

    A heading has at most ``most`` characters, for it is not cut with the rows.
    """
    title = untrusted.title(plain(part.heading), most) if part.folded else ""
    head = "" if part.folded else f"{heading.format(written(part.heading, most))}\n"
    if isinstance(part.body, Table):
        rules = ["---" if n < part.body.left else "---:" for n in range(len(part.body.head))]
        head = "\n".join(filter(None, (head, row(part.body.head), row(rules))))
        rows = tuple(row(map(written, cells)) for cells in part.body.rows)
    elif isinstance(part.body, Dump):
        rows = (untrusted.fenced(part.body.text),)
    else:
        rows = tuple(dict.fromkeys(map(_item, part.body)))
    return Block(head, rows, part.rank, part.noun, title, part.legend)


def _item(line: Line) -> str:
    return "\n".join([f"- {written(line.words)}", *(f"  - {written(more)}" for more in line.more)])


def row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def page(blocks: Sequence[Block]) -> str:
    """Return the page whole."""
    return _joined(blocks, [len(block.rows) for block in blocks])


def fit(blocks: Sequence[Block], most: int) -> str:
    """Return the page with as many rows as fit ``most`` characters, those of low ranks first."""
    kept = [0] * len(blocks)
    room = most - len(_joined(blocks, kept))
    for n in sorted(range(len(blocks)), key=lambda one: blocks[one].rank):
        for text in blocks[n].rows:
            if len(text) + 1 > room:
                break
            room -= len(text) + 1
            kept[n] += 1
    return _joined(blocks, kept)


def _joined(blocks: Sequence[Block], kept: Sequence[int]) -> str:
    return "\n\n".join(filter(None, map(Block.cut, blocks, kept))) + "\n"
