"""A page within a number of characters: cut between rows, with a count of what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Block:
    """A part of a page: ``rows`` between ``head`` and ``tail``. The lower ``rank``, the later it is cut.

    ``noun`` is what a row is; ``title`` opens what is folded, "" where it is open.
    """

    head: str
    rows: tuple[str, ...] = ()
    rank: int = 0
    noun: str = "row"
    title: str = ""

    def written(self, kept: int) -> str:
        """Return the block with its first rows only."""
        left = len(self.rows) - kept
        nouns = self.noun if left == 1 else f"{self.noun}s"
        more = f"… and {left:,} more {nouns}, left out here for their length." if left else ""
        body = "\n".join(filter(None, (self.head, *self.rows[:kept])))
        body = "\n\n".join(filter(None, (body, more)))
        return f"<details><summary>{self.title}</summary>\n\n{body}\n\n</details>" if self.title else body


def fit(blocks: Sequence[Block], most: int) -> str:
    """Return the page with as many rows as fit ``most`` characters, those of low ranks first."""
    kept = [0] * len(blocks)
    room = most - len(_joined(blocks, kept))
    for n in sorted(range(len(blocks)), key=lambda one: blocks[one].rank):
        for row in blocks[n].rows:
            if len(row) + 1 > room:
                break
            room -= len(row) + 1
            kept[n] += 1
    return _joined(blocks, kept)


def _joined(blocks: Sequence[Block], kept: Sequence[int]) -> str:
    return "\n\n".join(block.written(count) for block, count in zip(blocks, kept, strict=True)) + "\n"
