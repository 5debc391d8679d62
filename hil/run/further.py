# SPDX-License-Identifier: Apache-2.0
"""What more boots of a run would be for: which cases are open on which boards, and behind which look.

A run's journal is gone through look by look, as the run itself did, as far as its looks are whole: what a
sitting that was killed left of the next one is there, and decides nothing yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hil.gate import judge
from hil.gate.judging import open_cases
from hil.model import ComparedSeries, Comparison, Entry, NotRun, RunRecord
from hil.thresholds import Thresholds

Pair = tuple[str, str]  # board, case id


@dataclass(frozen=True)
class Further:
    """A comparison that can be taken further: behind so many ``whole`` looks, by these boards and cases."""

    comparison: Comparison
    whole: int
    pairs: frozenset[Pair]

    @property
    def boots(self) -> tuple[int, int]:
        """The boots of a board, (candidate, other), from here to the last look."""
        done, last = self.comparison.looks[self.whole - 1], self.comparison.looks[-1]
        return last[0] - done[0], last[1] - done[1]


def find_further(entries: Sequence[Entry], thresholds: Mapping[str, Thresholds]) -> tuple[Further, ...]:
    """Return what more boots would be for, a comparison each; () where none would decide anything.

    Raises ConfigError as judge() does.
    """
    comparisons = [entry for entry in entries if isinstance(entry, Comparison) and not entry.identical]
    return tuple(found for comparison in comparisons if (found := _further(comparison, entries, thresholds)))


def _further(
    comparison: Comparison, entries: Sequence[Entry], thresholds: Mapping[str, Thresholds]
) -> Further | None:
    counts = Counter(
        (entry.board, entry.case_id, entry.role) for entry in entries if isinstance(entry, RunRecord)
    )
    begun = {(board, case_id) for board, case_id, _role in counts}  # a run may spread its cases
    for whole in range(1, len(comparison.looks)):
        known = list(_as_of(comparison, entries, comparison.looks[whole - 1]))
        open_ids = open_cases(comparison, known, thresholds)
        boards = set(comparison.boards)
        if whole >= len(comparison.unasked_looks):
            boards &= _worth_it(comparison, known, open_ids, thresholds)
        pairs = {(board, case_id) for board in boards for case_id in open_ids} & begun - _given_up(entries)
        candidate, other = comparison.looks[whole]
        if any(
            counts[*pair, "candidate"] < candidate or counts[*pair, comparison.role] < other for pair in pairs
        ):
            return Further(comparison, whole, frozenset(pairs))
        if not pairs:
            return None
    return None


def _as_of(comparison: Comparison, entries: Sequence[Entry], look: tuple[int, int]) -> Iterator[Entry]:
    """Yield the entries, of the comparison's boots only those that each board had after a look."""
    most = {"candidate": look[0], comparison.role: look[1]}
    done: Counter[tuple[str, str, str]] = Counter()
    for entry in entries:
        if not isinstance(entry, RunRecord) or entry.board not in comparison.boards:
            yield entry
            continue
        if comparison.cases and entry.case_id not in comparison.cases:
            yield entry
            continue
        key = (entry.board, entry.case_id, entry.role)
        done[key] += 1
        if done[key] <= most.get(entry.role, 0):
            yield entry


def _given_up(entries: Sequence[Entry]) -> set[Pair]:
    """Return what a board cannot measure, or the other firmware not on it."""
    return {
        (entry.board, entry.case_id)
        for entry in entries
        if isinstance(entry, NotRun) and entry.cause in ("not-compared", "ruled-out")
    }


def _worth_it(
    comparison: Comparison,
    known: Sequence[Entry],
    open_ids: frozenset[str],
    thresholds: Mapping[str, Thresholds],
) -> set[str]:
    """Return the boards of which more boots may decide something: one alone, where only it is in the way.

    It is where each open comparison names it, and it alone, as contradicting the others, and where all of
    them would be decided without it.
    """
    everyone = set(comparison.boards)
    if not open_ids:
        return everyone
    named = {
        item.odd_boards for item in judge(known, thresholds).compared if _is_open(item, comparison, open_ids)
    }
    if len(named) != 1 or len(odd := next(iter(named))) != 1:
        return everyone
    without = [entry for entry in known if not (isinstance(entry, RunRecord) and entry.board == odd[0])]
    return everyone if open_cases(comparison, without, thresholds) & open_ids else set(odd)


def _is_open(item: ComparedSeries, comparison: Comparison, open_ids: frozenset[str]) -> bool:
    mine = item.target == comparison.target and item.case_id in open_ids
    return mine and item.blocking and item.outcome == "undecided"
