# SPDX-License-Identifier: Apache-2.0
"""What came of the faults: a row each, on the screen and as a table of Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hil.base.untrusted import code
from tools.chaos.trial import Row

COLUMNS = (
    "fault",
    "when",
    "owner",
    "what was reported",
    "recovered",
    "after s",
    "records lost",
    "left behind",
    "next run untouched",
)
_LAB = re.compile(r"\S*/hil-chaos-\w+")  # a temporary folder's name says nothing
SENTENCE_MAX = 140  # characters of what was reported


def lines(rows: Sequence[Row], width: int) -> list[str]:
    """Return the rows for a screen ``width`` columns wide: a fault, what came of it, what was reported.

    What is wrong with a row stands below it.
    """
    found = []
    for row in sorted(rows, key=lambda row: row.fault):
        said = f"{row.moment}, {row.owner}, recovered {row.recovered}, {row.recovery_s:g} s, {row.lost} lost"
        said += f", left: {', '.join(row.left) or '0'}, next run untouched: {row.next_run}"
        found += [f"{'✗' if row.wrong else '✓'} {row.fault}", f"  {said}", f"  {row.reported}"[:width]]
        found += [f"  wrong: {why}" for why in row.wrong]
    return found


def summary(rows: Sequence[Row]) -> str:
    """Return how many faults there were and whose they were, in one sentence."""
    owners = Counter(row.owner for row in rows)
    wrong = sum(bool(row.wrong) for row in rows)
    lost, left = sum(row.lost for row in rows), sum(len(row.left) for row in rows)
    untouched = sum(row.next_run.startswith("yes") for row in rows)
    again = sum(row.next_run.startswith("yes, after") for row in rows)
    said = ", ".join(f"{owner} {count}" for owner, count in owners.most_common())
    return (
        f"{len(rows)} faults ({said}): {wrong} answered wrongly, {lost} acknowledged records lost, {left} "
        f"things left behind, {untouched} next runs untouched"
        f"{f' ({again} of them at a later try)' if again else ''}."
    )


def page(rows: Sequence[Row]) -> str:
    """Return the rows as a page of Markdown."""
    text = [summary(rows), "", f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    for row in sorted(rows, key=lambda row: row.fault):
        said = code(_LAB.sub("LAB", row.reported), SENTENCE_MAX)
        text.append(f"| {' | '.join(_cells(replace(row, reported=said)))} |")
    return "\n".join([*text, ""])


def _cells(row: Row) -> list[str]:
    return [
        row.fault,
        row.moment,
        row.owner,
        row.reported,
        row.recovered,
        f"{row.recovery_s:g}",
        str(row.lost),
        ", ".join(row.left) or "0",
        row.next_run,
    ]
