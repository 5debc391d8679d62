# SPDX-License-Identifier: Apache-2.0
"""The journal of a run that was taken further, as it is judged: what holds no more, and what is not whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hil.gate.compare.pairs import records_of
from hil.model import Comparison, Entry, NotRun, RunRecord


def still_true(entries: Sequence[Entry]) -> list[Entry]:
    """Leave out that a case was cut off where more boots of it were measured afterwards."""
    last = {(e.board, e.case_id): place for place, e in enumerate(entries) if isinstance(e, RunRecord)}
    return [
        entry
        for place, entry in enumerate(entries)
        if not (isinstance(entry, NotRun) and entry.cause == "cut-off")
        or last.get((entry.board, entry.case_id), -1) < place
    ]


def whole_looks(entries: Sequence[Entry]) -> list[Entry]:
    """Leave out the boots of a look that somebody asked for and that was broken off: they decide nothing yet.

    It was where a board and case that has some of its boots lacks others. Asked for is what stands behind the
    planned looks, and behind the end of the budget.
    """
    broken: set[int] = set()
    for comparison in (entry for entry in entries if isinstance(entry, Comparison)):
        if len(comparison.unasked_looks) < len(comparison.looks):
            broken |= set(map(id, _broken_off(comparison, entries)))
    return [entry for entry in entries if id(entry) not in broken]


def _broken_off(comparison: Comparison, entries: Sequence[Entry]) -> list[RunRecord]:
    given_up = {
        (entry.board, entry.case_id)
        for entry in entries
        if isinstance(entry, NotRun) and entry.cause == "not-compared"
    }
    done: Counter[tuple[str, str, str]] = Counter()
    places = []  # of each boot among those of its board, case and role
    for record in records_of(comparison, entries):
        done[record.board, record.case_id, record.role] += 1
        places.append((record, done[record.board, record.case_id, record.role]))
    by_itself = _measured_by_itself(comparison, entries)
    whole = comparison.looks[by_itself - 1]
    for number, look in enumerate(comparison.looks[by_itself:], start=by_itself + 1):
        before, after = (
            dict(zip(("candidate", comparison.role), each, strict=True)) for each in (whole, look)
        )
        begun = {(record.board, record.case_id) for record, place in places if place > before[record.role]}
        if number <= len(comparison.unasked_looks):  # a planned look is every board's
            cases = {case_id for _board, case_id in begun}
            begun = {(board, case_id) for board, case_id, _role in done if case_id in cases}
        if any(done[*pair, role] < boots for pair in begun - given_up for role, boots in after.items()):
            return [record for record, place in places if place > before[record.role]]
        whole = look
    return []


def _measured_by_itself(comparison: Comparison, entries: Sequence[Entry]) -> int:
    """Return how many looks were measured without being asked: those planned, or until the budget ended."""
    planned = len(comparison.unasked_looks)
    done: Counter[tuple[str, str]] = Counter()
    for entry in entries:
        if isinstance(entry, RunRecord) and entry.role == "candidate":
            done[entry.board, entry.case_id] += 1
        elif isinstance(entry, NotRun) and entry.cause == "cut-off" and _is_of(comparison, entry):
            boots = done[entry.board, entry.case_id]
            planned = min(planned, sum(candidate <= boots for candidate, _other in comparison.looks))
    return max(planned, 1)


def _is_of(comparison: Comparison, entry: NotRun) -> bool:
    return entry.board in comparison.boards and entry.case_id in comparison.cases
