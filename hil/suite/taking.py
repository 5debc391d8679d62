# SPDX-License-Identifier: Apache-2.0
"""A session's file becomes a run on disk, to be judged and reported like any other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hil.base.paths import PROJECT_ROOT
from hil.base.project import product_here
from hil.model import SUITE_RACK, Entry, RunRecord
from hil.store import RunDirectory
from hil.store.files import replace_file
from hil.store.run_info import ImageInfo, RunBoard, RunInfo, Trigger, describe_run, new_run_id
from hil.suite.facts import BoardFact, SuiteSession
from hil.suite.figures import figures_of
from hil.suite.limits import limits_of
from hil.suite.records import entries_of, target_of
from hil.thresholds.loader import FOLDER

SUITE = "pytest"
_SESSION = re.compile(r"(\d{8}T\d{6}Z)-([0-9a-f]{4,})")  # as the plugin names it


@dataclass(frozen=True)
class Taken:
    """A run that is to be judged. ``notes`` are what a person should know of its limits."""

    directory: RunDirectory
    notes: Sequence[str]


def take(session: SuiteSession, out: Path, thresholds: Path, trigger: Trigger) -> Taken | None:
    """Make a run of a session's facts; None where no test measured and none failed.

    Raises ConfigError as figures_of() and limits_of() do, RigError where the disk does not take it.
    """
    figures = figures_of(session)
    run_id = _run_id(session.session.session)
    entries = list(entries_of(session, figures, run_id, product=product_here()))
    if not entries:
        return None
    texts, notes = limits_of(figures, thresholds)
    directory = RunDirectory.create(out, describe_session(session, entries, run_id, trigger))
    keep_limits(directory, texts)
    for entry in entries:
        directory.append(entry)
    return Taken(directory, notes)


def keep_limits(directory: RunDirectory, texts: Mapping[str, str]) -> Path:
    """Write thresholds files, by their names, into a run's folder; return where they are."""
    folder = directory.path / FOLDER
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        replace_file(folder / name, text.encode())
    return folder


def _run_id(session: str) -> str:
    """Return the run's name, of the session's time: a session is taken once."""
    found = _SESSION.fullmatch(session)
    return f"{found[1]}-{SUITE}-{found[2]}" if found else new_run_id(SUITE)


def describe_session(
    session: SuiteSession, entries: Sequence[Entry], run_id: str, trigger: Trigger
) -> RunInfo:
    """Return what run.json holds of a session: its boards, images and cases, a boot of each."""
    boards = {board.board: board for board in session.boards}
    plan: dict[str, dict[str, int]] = {}
    for entry in entries:
        if isinstance(entry, RunRecord):
            plan.setdefault(entry.board, {})[entry.case_id] = 1
    info = describe_run(
        repository=PROJECT_ROOT,
        run_id=run_id,
        rack=SUITE_RACK,
        suite=SUITE,
        trigger=trigger,
        boards=tuple(RunBoard(id=one.board, target=target_of(one), kind=one.kind) for one in boards.values()),
        plan=plan,
        firmware=images_of(session.boards),
    )
    return msgspec.structs.replace(info, started_utc=session.session.started_utc)


def images_of(boards: Sequence[BoardFact]) -> dict[str, ImageInfo]:
    """Return the images of a session by their names, which are of target and file."""
    first = {board.image_sha256: board for board in reversed(boards) if board.image_sha256}
    found: dict[str, ImageInfo] = {}
    for sha256, board in sorted(first.items()):
        name = f"{target_of(board)}-{Path(board.image).stem}"
        key = f"{name}-{sha256[:8]}" if name in found else name
        found[key] = ImageInfo(sha256=sha256, idf_version=board.idf_version)
    return found
