# SPDX-License-Identifier: Apache-2.0
"""``thresholds/nightly/reference.yaml``: the frozen firmware that every night is measured beside.

    schema: 1
    references:
      - commit: 4f1c…           # 40 digits, so that nobody's tag moves it
        since: 2026-11-20       # the first night, by the date of its evening
        until: 2027-03-01       # the last one; left out while it is in force
        why: the release 0.2
      - commit: 9b07…
        since: 2027-02-16       # 14 nights beside the one before

A reference is renewed when it does not build any more, or when the benchmarks have changed so that it is
measured by another ruler. The renewal overlaps OVERLAP_NIGHTS nights, so that it makes no step.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.yamlfile import Node, load
from hil.history.nightly.divisive import OVERLAP_NIGHTS

REFERENCE = Path("nightly", "reference.yaml")  # in the folder of thresholds
SCHEMA = 1
TOGETHER_MAX = 2  # more references a night would cost more than they tell
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Reference:
    """A commit and the nights in which it is measured; ``until`` None while it is in force."""

    commit: str
    since: datetime.date
    until: datetime.date | None
    why: str
    source: str

    def covers(self, night: datetime.date) -> bool:
        return self.since <= night and (self.until is None or night <= self.until)


@dataclass(frozen=True)
class References:
    """In order of ``since``."""

    references: tuple[Reference, ...] = ()

    def of(self, night: datetime.date) -> tuple[Reference, ...]:
        """Return the references to measure in a night, by the date of its evening: none, one, or two."""
        return tuple(reference for reference in self.references if reference.covers(night))


def load_references(thresholds: Path) -> References:
    """Read the references in a folder of thresholds; none where there is no such file.

    Raises ConfigError naming file, line and the way out.
    """
    path = thresholds / REFERENCE
    if not path.exists():
        return References()
    root = load(path)
    root.schema(SCHEMA)
    nodes = root.sections("references")
    references = tuple(_read(node) for node in nodes)
    root.finish()
    for node, before, after in zip(nodes[1:], references, references[1:], strict=False):
        _check_order(node, before, after)
    for node, reference in zip(nodes, references, strict=True):
        _check_count(node, reference, references)
    return References(references)


def tonight(now: datetime.datetime) -> datetime.date:
    """Return the date of a night, which goes from noon to noon UTC: that of its evening."""
    return (now.astimezone(datetime.UTC) - datetime.timedelta(hours=12)).date()


def _read(node: Node) -> Reference:
    commit = node.text("commit")
    if not _COMMIT.fullmatch(commit):
        raise node.error(
            "commit",
            f"the commit {commit!r} is not a full hash of 40 digits.",
            next_step=f"git rev-parse {commit}",
        )
    reference = Reference(
        commit, node.date("since"), node.date("until", default=None), node.text("why"), node.where("commit")
    )
    if reference.until and reference.until < reference.since:
        raise node.error("until", f"until {reference.until} is before since {reference.since}.")
    return reference


def _check_order(node: Node, before: Reference, after: Reference) -> None:
    if after.since <= before.since:
        raise node.error(
            "since",
            f"since {after.since} is not after {before.since} of {before.source}.",
            next_step="list the references in the order of their start.",
        )
    if before.until is None:
        end = after.since + datetime.timedelta(days=OVERLAP_NIGHTS - 1)
        raise node.error(
            "since",
            f"a second reference begins, but the reference of {before.source} has no end.",
            next_step=f"give that reference 'until: {end}', so that both run for {OVERLAP_NIGHTS} nights.",
        )


def _check_count(node: Node, reference: Reference, references: Sequence[Reference]) -> None:
    beside = [other for other in references if other.covers(reference.since)]
    if len(beside) > TOGETHER_MAX:
        raise node.error(
            "since",
            f"on {reference.since}, {len(beside)} references would be measured; the maximum is "
            f"{TOGETHER_MAX}.",
            next_step=f"end a reference earlier, at {' or '.join(other.source for other in beside[:-1])}.",
        )
