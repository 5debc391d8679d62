# SPDX-License-Identifier: Apache-2.0
"""One line a trace: where a sample was late or a limit broke, and what the trace says of it.

Where the files of a run's traces lie, and which of them are published.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hil.model import RunRecord, Verdict
from hil.reports.names import place
from hil.trace.files import FOLDER
from hil.trace.finding import INVERSION

GROUP = "trace"


@dataclass(frozen=True)
class TraceNote:
    """``place`` is "v1 (virtual) jitter resource=mutex"; ``file`` the events' file, relative to the run, ""
    where there is none."""

    board: str
    case_id: str
    place: str
    finding: str
    file: str

    @property
    def text(self) -> str:
        return f"{self.place}: {self.finding}"

    @property
    def picture(self) -> str:
        return str(PurePosixPath(self.file).with_suffix(".svg")) if self.file else ""

    @property
    def perfetto(self) -> str:
        return str(PurePosixPath(self.file).with_suffix(".pftrace")) if self.file else ""


def trace_notes(records: Iterable[RunRecord], verdict: Verdict) -> list[TraceNote]:
    """Return what the run's traces say, inversions first; a trace with nothing to tell has no note."""
    notes = [note for record in records for note in _notes(record, verdict)]
    return sorted(notes, key=lambda note: INVERSION not in note.finding)


def finding_of(record: RunRecord) -> str:
    """Return what a record's trace says, or why it is not there; "" where none was wanted."""
    group = record.environment.get(GROUP, {})
    if error := group.get("error"):
        return f"the scheduler trace could not be had: {error}"
    return str(group.get("finding", ""))


def _notes(record: RunRecord, verdict: Verdict) -> Iterator[TraceNote]:
    finding = finding_of(record)
    if not finding:
        return
    group = record.environment[GROUP]
    own = [item for item in verdict.series if (item.board, item.case_id) == (record.board, record.case_id)]
    telling = group.get("outlier_us") is not None or finding.startswith(INVERSION) or "error" in group
    if telling or any(item.outcome == "regressed" for item in own):
        where, file = place(record, verdict), str(group.get("file", ""))
        yield TraceNote(record.board, record.case_id, where, finding, file)


PUBLISHED = (".svg", ".pftrace")


def events_file(run_path: Path, record: RunRecord) -> Path | None:
    """Return the file of a record's trace, None where there is none (any more)."""
    return _kept(run_path, record, "file")


def timeline(run_path: Path, record: RunRecord) -> Path | None:
    """Return the timeline that an emulator wrote of a record's boot, None where there is none."""
    return _kept(run_path, record, "timeline")


def _kept(run_path: Path, record: RunRecord, key: str) -> Path | None:
    name = record.environment.get(GROUP, {}).get(key)
    path = run_path / str(name)
    inside = isinstance(name, str) and path.resolve().is_relative_to((run_path / FOLDER).resolve())
    return path if inside and path.is_file() else None


def published_files(run_path: Path) -> Iterator[Path]:
    """Yield what a site shows of a run's traces."""
    yield from (path for path in sorted((run_path / FOLDER).rglob("*")) if path.suffix in PUBLISHED)
