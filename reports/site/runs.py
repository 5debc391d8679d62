"""The runs that a site is about, as they are on disk."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, ExitCode, combine_exit_codes
from hil.model import Verdict
from hil.reports.allure.address import ids_of
from hil.reports.boards import has_virtual
from hil.reports.history import line_of
from hil.reports.ledger import PEER_FOLDER, LossNote, loss_notes
from hil.reports.stored import read_verdict
from hil.reports.traces.notes import TraceNote, trace_notes
from hil.store import RunDirectory
from hil.trace.files import FOLDER as TRACES

RESULTS = "allure-results"


@dataclass(frozen=True)
class StoredRun:
    """One run: ``info`` is run.json, ``line`` what the history keeps, ``traces`` what its traces say,
    ``losses`` what its loss ledgers say."""

    path: Path
    info: Mapping[str, Any]
    verdict: Verdict
    line: Mapping[str, Any]
    traces: tuple[TraceNote, ...] = ()
    losses: tuple[LossNote, ...] = ()

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def results(self) -> Path:
        return self.path / RESULTS

    @functools.cached_property
    def test_ids(self) -> Mapping[tuple[str, str], str]:
        """Allure's id of each (board, case id); none where its thresholds cannot be read, and so no name."""
        with suppress(ConfigError):
            return ids_of(self.path, self.info, self.verdict)
        return {}


def read_run(path: Path) -> StoredRun:
    """Return the run in ``path``. Raises ConfigError where it is none, or was never judged."""
    directory = RunDirectory.open(path)
    verdict = read_verdict(directory.verdicts_path)
    telling = any((directory.path / folder).is_dir() for folder in (TRACES, PEER_FOLDER))
    records = directory.read().records if telling else []  # else the journal need not be read
    traces, losses = trace_notes(records, verdict), loss_notes(records, verdict)
    line = line_of(directory.path, verdict)
    return StoredRun(directory.path, directory.read_info(), verdict, line, tuple(traces), tuple(losses))


def decisive(runs: Sequence[StoredRun]) -> StoredRun:
    """Return the run whose exit code takes precedence."""
    code = combine_exit_codes(run.verdict.exit_code for run in runs)
    return next((run for run in runs if ExitCode(run.verdict.exit_code) == code), runs[0])


def title_of(runs: Sequence[StoredRun]) -> str:
    """Return "HIL performance · rack virtual · quick · commit 0a9e997 · virtual figures"."""
    commits = _distinct(f"{run.line['commit'][:7]}{'+' if run.line['dirty'] else ''}" for run in runs)
    racks, suites = _distinct(run.line["rack"] for run in runs), _distinct(run.line["suite"] for run in runs)
    virtual = any(has_virtual(run.info, run.verdict) for run in runs)
    parts = [
        "HIL performance",
        f"rack{'s' if len(racks) > 1 else ''} {', '.join(racks)}" if racks else "",
        ", ".join(suites),
        f"commit {', '.join(commits)}" if commits else "",
        "virtual figures" if virtual else "",
    ]
    return " · ".join(filter(None, parts))


def _distinct(words: Any) -> list[str]:
    return [word for word in dict.fromkeys(words) if word.strip("+")]
