# SPDX-License-Identifier: Apache-2.0
"""Each board's part in a run: what it is, and what became of the cases that were planned for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hil.boards.quarantine import describe
from hil.model import NotRun, Verdict
from hil.reports.kinds import kind_remark, unreal
from hil.store.run_info import RunInfo, is_unchanged

UNCHANGED_REMARK = (
    "The firmware was compared with itself: what is blocked here is blocked falsely, and blocks nothing."
)


@dataclass(frozen=True)
class BoardCases:
    """A board's case ids. A case is either measured, faulted or not run; those ruled out were never planned.

    ``kind`` and ``target`` are "" where nothing is left that would tell.
    """

    board: str
    kind: str
    target: str
    measured: frozenset[str]
    faulted: frozenset[str]
    not_run: frozenset[str]
    ruled_out: frozenset[str]

    @property
    def planned(self) -> int:
        return len(self.measured) + len(self.faulted) + len(self.not_run)


def natures_of(info: RunInfo | None, verdict: Verdict) -> dict[str, tuple[str, str]]:
    """Return kind and target of each board that measured something, or that run.json names."""
    natures: dict[str, tuple[str, str]] = {item.board: (item.kind, item.target) for item in verdict.series}
    return natures | {board.id: (board.kind, board.target) for board in (info.boards if info else ())}


def boards_of(info: RunInfo | None, verdict: Verdict) -> list[BoardCases]:
    """Return the boards of a run, sorted: those that run.json names, and those that its verdict does."""
    natures = natures_of(info, verdict)
    named = {fault.board for fault in verdict.faults} | {item.board for item in verdict.not_run}
    cases: dict[str, set[str]] = {}
    for item in verdict.series:
        cases.setdefault(item.board, set()).add(item.case_id)
    return [
        _cases_of(board, natures.get(board, ("", "")), verdict, cases.get(board, set()))
        for board in sorted({*natures, *named} - {""})
    ]


def _cases_of(board: str, nature: tuple[str, str], verdict: Verdict, judged: set[str]) -> BoardCases:
    """Sort a board's cases; one that was measured in some boots and faulted in another is faulted."""
    faulted = {fault.case_id for fault in verdict.faults if fault.board == board and fault.case_id}
    measured = judged - faulted
    missing = [item for item in verdict.not_run if item.board == board and item.cause != "handed-over"]
    not_run = {item.case_id for item in missing if item.expected} - faulted - measured
    ruled_out = {item.case_id for item in missing} - faulted - measured - not_run
    return BoardCases(board, *nature, *map(frozenset, (measured, faulted, not_run, ruled_out)))


def unreal_kinds(info: RunInfo, verdict: Verdict) -> tuple[str, ...]:
    """Return the kinds of the run's boards that are no silicon, also where nothing was measured."""
    return unreal(board.kind for board in boards_of(info, verdict))


def noise_remark(info: RunInfo) -> str:
    """Return "Simulated noise: profile typical (…)." where run.json says that there was some, else ""."""
    return f"Simulated noise: {info.noise.description}." if info.noise else ""


def noted_kind(info: RunInfo, kind: str) -> str:
    """Return a board's kind, and whether its figures are simulated: "virtual, simulated noise"."""
    return f"{kind}, simulated noise" if kind and noise_remark(info) else kind


def remarks(info: RunInfo, verdict: Verdict) -> list[str]:
    """Return what stands wherever figures of the run do: that they are virtual or emulated, that noise is
    simulated, that nothing was changed, what the rack's check is worth, which boards are in quarantine."""
    kinds = unreal_kinds(info, verdict)
    found = [
        kind_remark(kinds),
        noise_remark(info),
        UNCHANGED_REMARK if is_unchanged(info) else "",
        "" if kinds else standing_remark(info),
    ]
    absent = (f"Board {one.board} took no part: {describe(one)}." for one in info.quarantined)
    return [*filter(None, found), *absent]


def standing_remark(info: RunInfo) -> str:
    """Return why a rack's check is advisory or not fit, "" where it is qualified or run.json does not say."""
    known, rack = info.standing, f"rack {info.rack}"
    if known is None or known.state == "qualified":
        return ""
    if known.state == "not fit":
        return f"Not fit: {rack} blocks unchanged firmware more often than it may (hil rack qualify)."
    count = known.judgements
    has = "no history at hand tells" if count is None else f"{count} of {known.needed} judgements tell"
    return f"Advisory: {has} how {rack} judges unchanged firmware (hil rack qualify)."


def split_not_run(verdict: Verdict) -> tuple[list[NotRun], list[NotRun]]:
    """Return what should have been measured and was not, and what limits, chip, labels or rack forbid.

    A case that was measured and not compared any further is neither: its comparisons say why. Nor is one that
    another board took over: a warning says so.
    """
    measured = {(item.board, item.case_id) for item in verdict.series}
    return (
        [item for item in verdict.not_run if item.expected],
        [
            item
            for item in verdict.not_run
            if not item.expected
            and item.cause != "handed-over"
            and (item.board, item.case_id) not in measured
        ],
    )


def not_run_groups(not_run: Iterable[NotRun]) -> list[tuple[str, int, list[str]]]:
    """Return (reason, how many cases, on which boards), the most frequent first."""
    groups: dict[str, list[NotRun]] = {}
    for item in not_run:
        groups.setdefault(item.reason, []).append(item)
    found = [(why, len(items), sorted({item.board for item in items})) for why, items in groups.items()]
    return sorted(found, key=lambda group: (-group[1], group[0]))
