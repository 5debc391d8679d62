# SPDX-License-Identifier: Apache-2.0
"""A run's folder read once, for everything that is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hil.model import RunRecord, Verdict
from hil.store.directory import JOURNAL, THRESHOLDS, VERDICTS, RunDirectory
from hil.store.files import read_bytes
from hil.store.journal import Journal, parse_journal
from hil.store.reported import NOT_REPORTED, Reported, read_reported
from hil.store.run_info import RunInfo
from hil.store.verdicts import no_verdict, parse_verdict


@dataclass(frozen=True, eq=False)
class StoredRun:
    """What a run left. ``verdict`` is None where nobody judged it.

    ``files`` are records.jsonl and verdicts.json byte by byte, as they are published. ``limits`` are the
    run's own thresholds files by bench, not yet parsed: one that is damaged costs who needs it.
    """

    path: Path
    info: RunInfo
    journal: Journal
    verdict: Verdict | None
    files: Mapping[str, bytes]
    limits: Mapping[str, bytes]
    reported: Reported = NOT_REPORTED

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def records(self) -> tuple[RunRecord, ...]:
        return self.journal.records


@dataclass(frozen=True, eq=False)
class JudgedRun(StoredRun):
    """A run that was judged: what every report is made of."""

    verdict: Verdict


def read_measured(path: Path) -> StoredRun:
    """Return the run in ``path`` without its verdict, to be judged; each of its files is opened once.

    Raises:
        ConfigError: ``path`` holds no run, or its run.json, journal or reporting.json is damaged.
        RigError: the disk does not give them.
    """
    directory = RunDirectory.open(path)
    folder = directory.path
    content = read_bytes(folder / JOURNAL)
    limits = {own.stem: read_bytes(own) for own in sorted((folder / THRESHOLDS).glob("*.yaml"))}
    info, journal = directory.read_info(), parse_journal(folder / JOURNAL, content)
    return StoredRun(folder, info, journal, None, {JOURNAL: content}, limits, read_reported(folder))


def add_verdict(run: StoredRun, verdict: Verdict) -> JudgedRun:
    """Write a run's verdict, and return the run with it. Raises RigError."""
    return _judged(run, verdict, RunDirectory(run.path).write_verdict(verdict))


def read_run(path: Path) -> StoredRun:
    """Return the run in ``path``, a JudgedRun where it was judged.

    Raises as read_measured() does, and ConfigError where its verdict is damaged.
    """
    run = read_measured(path)
    verdicts = run.path / VERDICTS
    if not verdicts.exists():
        return run
    content = read_bytes(verdicts)
    return _judged(run, parse_verdict(verdicts, content), content)


def _judged(run: StoredRun, verdict: Verdict, content: bytes) -> JudgedRun:
    files = {**run.files, VERDICTS: content}
    return JudgedRun(run.path, run.info, run.journal, verdict, files, run.limits, run.reported)


def read_judged_run(path: Path) -> JudgedRun:
    """Return the run in ``path``. Raises as read_run() and require_verdict() do."""
    return require_verdict(read_run(path))


def require_verdict(run: StoredRun) -> JudgedRun:
    """Return the run itself, which was judged. Raises ConfigError where it was not."""
    if isinstance(run, JudgedRun):
        return run
    raise no_verdict(run.path / VERDICTS, "No such file or directory")
