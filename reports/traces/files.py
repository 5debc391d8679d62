"""Where the files of a run's traces lie, and which of them are published."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hil.model import RunRecord
from hil.reports.traces.notes import GROUP
from hil.trace.files import FOLDER

PUBLISHED = (".svg", ".pftrace")


def events_file(run_path: Path, record: RunRecord) -> Path | None:
    """Return the file of a record's trace, None where there is none (any more)."""
    name = record.environment.get(GROUP, {}).get("file")
    path = run_path / str(name)
    inside = isinstance(name, str) and path.resolve().is_relative_to((run_path / FOLDER).resolve())
    return path if inside and path.is_file() else None


def published_files(run_path: Path) -> Iterator[Path]:
    """Yield what a site shows of a run's traces."""
    yield from (path for path in sorted((run_path / FOLDER).rglob("*")) if path.suffix in PUBLISHED)
