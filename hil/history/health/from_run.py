# SPDX-License-Identifier: Apache-2.0
"""What one run says of its rack: from run.json, the journal, and verdicts.json where it was judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from hil.base.errors import ExitCode, combine_exit_codes
from hil.history.summary import BoardInRun, BoardState, Health
from hil.model import KINDS, Fault, Recovery, RunRecord
from hil.store import StoredRun


def health_of(run: StoredRun) -> Health:
    """Return what a run says of its rack; one that was killed, or never judged, by what is there."""
    general = [entry for entry in run.journal.entries if isinstance(entry, Fault) and not entry.board]
    return Health(tuple(_boards(run)), dict(Counter(fault.owner for fault in general)), _first(general))


def exit_code_of(run: StoredRun) -> int:
    """Return a run's exit code: its verdict's, else that of its faults, else 130 (interrupted)."""
    if run.verdict:
        return run.verdict.exit_code
    faults = [entry.exit_code for entry in run.journal.entries if isinstance(entry, Fault)]
    return int(combine_exit_codes(faults) if faults else ExitCode.INTERRUPTED)


def _boards(run: StoredRun) -> Iterable[BoardInRun]:
    """Yield the boards that run.json names, and those that only the journal does, sorted."""
    entries = run.journal.entries
    records = [entry for entry in entries if isinstance(entry, RunRecord)]
    lost = {entry.board for entry in entries if isinstance(entry, Recovery) and not entry.by}
    faults: dict[str, list[Fault]] = {}
    for entry in entries:
        if isinstance(entry, Fault) and entry.board:
            faults.setdefault(entry.board, []).append(entry)
    natures: dict[str, tuple[str, str]] = {record.board: (record.kind, record.target) for record in records}
    measured = set(natures)
    natures |= {board.id: (board.kind, board.target) for board in run.info.boards}
    quarantines = {one.board: one for one in run.info.quarantined}
    usual = next((kind for kind, _ in natures.values() if kind in KINDS), KINDS[0])  # a rack's are alike
    for board in sorted({*natures, *faults}):
        kind, target = natures.get(board, ("", ""))
        own = faults.get(board, [])
        yield BoardInRun(
            board=board,
            kind=next((known for known in KINDS if known == kind), usual),
            target=target,
            state=_state(own, is_measured=board in measured, is_quarantined=board in quarantines),
            faults=dict(Counter(fault.owner for fault in own)),
            first_fault=_first(own),
            quarantine=quarantines.get(board),
            is_lost=board in lost,
        )


def _state(faults: Sequence[Fault], *, is_measured: bool, is_quarantined: bool) -> BoardState:
    if is_quarantined:
        return "quarantined"
    if faults:
        return "faulted"
    return "measured" if is_measured else "not-run"


def _first(faults: Sequence[Fault]) -> str:
    """Return the first fault's sentence, the rig's before others'."""
    ranked = sorted(faults, key=lambda fault: fault.owner != "rig")
    return ranked[0].sentence if ranked else ""
