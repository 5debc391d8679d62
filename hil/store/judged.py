# SPDX-License-Identifier: Apache-2.0
"""A run's folder read once, for everything that is made of it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.model import RunRecord, Verdict
from hil.store.directory import JOURNAL, RUN_INFO, THRESHOLDS, VERDICTS, RunDirectory
from hil.store.files import read_bytes
from hil.store.journal import Journal, parse_journal
from hil.store.run_info import parse_info
from hil.store.verdicts import no_verdict, parse_verdict


@dataclass(frozen=True, eq=False)
class StoredRun:
    """What a run left. ``verdict`` is None where nobody judged it, ``info`` is {} where run.json is missing.

    ``files`` are records.jsonl and verdicts.json byte by byte, as they are published. ``limits`` are the
    run's own thresholds files by bench, not yet parsed: one that is damaged costs who needs it.
    """

    path: Path
    info: Mapping[str, Any]
    journal: Journal
    verdict: Verdict | None
    files: Mapping[str, bytes]
    limits: Mapping[str, bytes]

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def records(self) -> tuple[RunRecord, ...]:
        return self.journal.records

    @property
    def day(self) -> datetime.date | None:
        """The day on which it started (UTC), as of which its limits count; None where nothing tells."""
        try:
            return datetime.date.fromisoformat(str(self.info.get("started_utc"))[:10])
        except ValueError:
            return None


@dataclass(frozen=True, eq=False)
class JudgedRun(StoredRun):
    """A run that was judged: what every report is made of."""

    verdict: Verdict


def read_run(path: Path) -> StoredRun:
    """Return the run in ``path``, a JudgedRun where it was judged; each of its files is opened once.

    Raises:
        ConfigError: ``path`` holds no run, or its run.json, journal or verdict is damaged.
        RigError: the disk does not give them.
    """
    folder = RunDirectory.open(path).path
    files = {name: read_bytes(folder / name) for name in (JOURNAL, VERDICTS) if (folder / name).exists()}
    info_path = folder / RUN_INFO
    info = parse_info(info_path, read_bytes(info_path)) if info_path.exists() else {}
    journal = parse_journal(folder / JOURNAL, files[JOURNAL])
    limits = {own.stem: read_bytes(own) for own in sorted((folder / THRESHOLDS).glob("*.yaml"))}
    if VERDICTS not in files:
        return StoredRun(folder, info, journal, None, files, limits)
    verdict = parse_verdict(folder / VERDICTS, files[VERDICTS])
    return JudgedRun(folder, info, journal, verdict, files, limits)


def read_judged_run(path: Path) -> JudgedRun:
    """Return the run in ``path``. Raises as read_run() and require_verdict() do."""
    return require_verdict(read_run(path))


def require_verdict(run: StoredRun) -> JudgedRun:
    """Return the run itself, which was judged. Raises ConfigError where it was not."""
    if isinstance(run, JudgedRun):
        return run
    raise no_verdict(run.path / VERDICTS, "No such file or directory")
