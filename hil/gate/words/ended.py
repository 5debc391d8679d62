# SPDX-License-Identifier: Apache-2.0
"""Why boots or whole comparisons are missing, by what the journal says of it."""

from __future__ import annotations

from collections.abc import Sequence

from hil.base.errors import ExitCode
from hil.gate.pairs import Pair
from hil.model import ComparedSeries, Comparison, Entry, Fault, NotRun

NOT_COMPARED = "not compared: "  # what the reason of a case begins with that has nothing to be compared with
_STOPPED = (ExitCode.INTERRUPTED, ExitCode.TERMINATED)


def why_ended(pair: Pair, entries: Sequence[Entry], item: ComparedSeries, *, final: bool) -> str:
    """Return why nothing is decided, with why the looks ended."""
    looks = pair.comparison.looks
    if item.look and item.look == len(looks) and item.change is not None:
        candidate, other = looks[item.look - 1]
        looked = f"all {item.look} looks" if item.look > 1 else "the only look"
        return f"{item.reason}, after {looked} ({candidate} + {other} boots a board)"
    if final:
        return item.reason
    said = sorted(entry.reason for entry in entries if isinstance(entry, NotRun) and _is_about(pair, entry))
    words = said[0].removeprefix(NOT_COMPARED).rstrip(".") if said else ""
    at = f" after look {item.look} of {item.looks}" if item.look else ""
    words = words or f"{_why_run_ended(pair, entries)}{at}"
    return ", and ".join(filter(None, (item.reason, words)))


def why_not_compared(pair: Pair, entries: Sequence[Entry]) -> str:
    """Say why the other has no boot of a case, as the boot loop wrote it down; "" where it did not."""
    said = sorted(
        entry.reason.removeprefix(NOT_COMPARED).rstrip(".")
        for entry in entries
        if isinstance(entry, NotRun) and _is_about(pair, entry) and entry.cause == "not-compared"
    )
    return said[0] if said else ""


def without_comparison(entries: Sequence[Entry]) -> dict[str, list[str]]:
    """Return why cases that no comparison names have nothing to be compared with, and on which boards."""
    named = {
        (board, case_id)
        for entry in entries
        if isinstance(entry, Comparison)
        for board in entry.boards
        for case_id in entry.cases
    }
    found: dict[str, set[str]] = {}
    for entry in entries:
        if not isinstance(entry, NotRun) or (entry.board, entry.case_id) in named:
            continue
        if entry.cause == "not-compared":
            found.setdefault(entry.reason.removeprefix(NOT_COMPARED).rstrip("."), set()).add(entry.board)
    return {reason: sorted(boards) for reason, boards in sorted(found.items())}


def _is_about(pair: Pair, entry: NotRun) -> bool:
    return entry.case_id == pair.case.case_id and entry.board in pair.comparison.boards


def _why_run_ended(pair: Pair, entries: Sequence[Entry]) -> str:
    faults = [entry for entry in entries if isinstance(entry, Fault)]
    if any(fault.exit_code in _STOPPED for fault in faults):
        return "the run was stopped"
    boards = pair.comparison.boards
    if {fault.board for fault in faults if fault.board} >= set(boards):
        return f"{'its board' if len(boards) == 1 else 'all its boards'} failed"
    if any(not fault.board for fault in faults):
        return "the run failed"
    return "the run ended"
