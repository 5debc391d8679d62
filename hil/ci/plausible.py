# SPDX-License-Identifier: Apache-2.0
"""What a leg says of itself has to be possible, before anything of it is judged.

Another job wrote it. A board that calls itself physical would have none of the virtual limits, and a plan
of no boots demands none.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hil.ci.plan import EMULATED_JOB, RACK_JOBS, Leg
from hil.model import Entry, RunRecord
from hil.store import RunInfo
from hil.store.directory import RUN_INFO, SUMMARY, VERDICTS
from hil.store.reported import REPORTED

MOST_FILE_BYTES = 32 * 1024 * 1024  # of run.json, verdicts.json, summary.md; a large one comes to some MB


def unreadable(folder: Path) -> str:
    """Return why the files in a leg's folder are not read, "" where they are.

    A link in it shows a file of this machine as the leg's, and no artefact holds one.
    """
    if folder.is_symlink():
        return "it is a link"
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            return f"it holds the link {path.relative_to(folder)}"
        if path.name in (RUN_INFO, VERDICTS, SUMMARY, REPORTED) and path.stat().st_size > MOST_FILE_BYTES:
            return f"its {path.name} has {path.stat().st_size:,} B, and at most {MOST_FILE_BYTES:,} are read"
    return ""


def implausible(info: RunInfo, entries: Iterable[Entry], leg: Leg) -> str:
    """Return what a run says of itself that cannot be, "" where all can.

    ``info`` is its run.json, ``entries`` its records.
    """
    kind = _kind_of(leg)
    others = [board for board in info.boards if board.kind != kind]
    if others:
        return f"its board {others[0].id} is {others[0].kind}, and this leg's are {kind}"
    boards = {(board.id, board.kind, board.target) for board in info.boards}
    measured = {(one.board, one.kind, one.target) for one in entries if isinstance(one, RunRecord)}
    if boards and (strangers := sorted(measured - boards)):
        return f"it has records of {' '.join(strangers[0])}, which is none of its boards"
    return ""


def _kind_of(leg: Leg) -> str:
    if leg.job in RACK_JOBS:
        return "physical"
    return "emulated" if leg.job == EMULATED_JOB else "virtual"
