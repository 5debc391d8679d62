# SPDX-License-Identifier: Apache-2.0
"""Why there is no decision: what a run left undecided, what would decide it, why boots are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hil.base.errors import ExitCode
from hil.gate.pairs import ComparedPair
from hil.gate.surroundings import HARDLY_HEARD
from hil.gate.words.compared import Compared
from hil.model import ComparedSeries, Comparison, Entry, Fault, NotRun, SeriesVerdict

NOT_COMPARED = "not compared: "  # what the reason of a case begins with that has nothing to be compared with
_STOPPED = (ExitCode.INTERRUPTED, ExitCode.TERMINATED)
_MORE_BOOTS = 4  # of `hil run --boots`: four times the samples halve an interval
_BUDGET = "run again with a larger --budget"


@dataclass(frozen=True)
class UndecidedLimits:
    """What blocks where it is bad, and came to no decision.

    ``exceeded`` are values beyond their limit, though not provably; ``limited`` those of which too little is
    known; ``compared`` the comparisons, of ``comparisons`` that block. ``no_base`` says that nothing was
    compared, as the base is missing, and not for its own sources.
    """

    exceeded: tuple[SeriesVerdict, ...]
    limited: tuple[SeriesVerdict, ...]
    compared: tuple[ComparedSeries, ...]
    comparisons: int
    no_base: bool = False

    def __bool__(self) -> bool:
        return bool(self.exceeded or self.limited or self.compared or self.no_base)

    @property
    def unmeasured(self) -> bool:
        """Whether nothing was measured for a comparison: then the run is not complete."""
        return not all(item.candidate_boots for item in self.compared)

    @property
    def case_ids(self) -> set[str]:
        judged: tuple[SeriesVerdict | ComparedSeries, ...] = (*self.exceeded, *self.limited, *self.compared)
        return {item.case_id for item in judged}

    @property
    def words(self) -> str:
        """Return "undecided: 1 of 4 comparisons (more boots may decide it: run again with …), …"."""
        missing = ["nothing was compared, as the base is missing (build it again, and run it again)"]
        parts = [*missing * self.no_base, *self._compared_words(), *self._limit_words()]
        return f"undecided: {', '.join(parts)}"

    def _compared_words(self) -> list[str]:
        found = self.compared
        if not found:
            return []
        of = f" of {self.comparisons}" if self.comparisons > len(found) else ""
        plural = self.comparisons > 1
        return [f"{len(found)}{of} comparison{'s' if plural else ''} ({_way(found)})"]

    def _limit_words(self) -> list[str]:
        weak = sum(item.cause == HARDLY_HEARD for item in self.limited)
        counts = (
            (len(self.exceeded), "exceeded, but not provably"),
            (len(self.limited) - weak, "without a decision"),
        )
        parts = [f"{n} limit{'' if n == 1 else 's'} {words}" for n, words in counts if n]
        if parts:
            them = "it" if len(self.exceeded) + len(self.limited) - weak == 1 else "them"
            parts[-1] += f" (more samples may decide {them}: hil run --boots {_MORE_BOOTS})"
        broken = f"{weak} limit{'' if weak == 1 else 's'} broken where a board hardly heard its access point"
        return [*parts, *([f"{broken} (see its antenna and where it stands)"] if weak else [])]


def _way(found: Sequence[ComparedSeries]) -> str:
    """Return what may decide comparisons: a larger budget, other boards, or what the warnings name."""
    more = sum(item.look > 0 for item in found)
    if more == len(found):
        return f"more boots may decide {'it' if more == 1 else 'them'}: {_BUDGET}, or on more boards"
    ways = [f"{more} may be decided by more boots: {_BUDGET}, or on more boards"] * bool(more)
    return "; ".join([*ways, "mend what the warnings name, and run it again"])


def undecided_of(series: Sequence[SeriesVerdict], compared: Compared) -> UndecidedLimits:
    """Return what of a run is undecided that can fail it."""
    return UndecidedLimits(
        exceeded=tuple(item for item in series if item.blocking and item.note == "marginal"),
        limited=tuple(item for item in series if item.blocking and item.outcome == "undecided"),
        compared=tuple(compared.blocking("undecided")),
        comparisons=len(compared.blocking()),
        no_base=compared.no_base is not None and compared.no_base.cause == "unknown",
    )


def why_ended(pair: ComparedPair, entries: Sequence[Entry], item: ComparedSeries, *, final: bool) -> str:
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


def why_not_compared(pair: ComparedPair, entries: Sequence[Entry]) -> str:
    """Return why the other has no boot of a case, as the boot loop recorded it; "" if it did not."""
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


def _is_about(pair: ComparedPair, entry: NotRun) -> bool:
    return entry.case_id == pair.case.case_id and entry.board in pair.comparison.boards


def _why_run_ended(pair: ComparedPair, entries: Sequence[Entry]) -> str:
    faults = [entry for entry in entries if isinstance(entry, Fault)]
    if any(fault.exit_code in _STOPPED for fault in faults):
        return "the run was stopped"
    boards = pair.comparison.boards
    if {fault.board for fault in faults if fault.board} >= set(boards):
        return f"{'its board' if len(boards) == 1 else 'all its boards'} failed"
    if any(not fault.board for fault in faults):
        return "the run failed"
    return "the run ended"
