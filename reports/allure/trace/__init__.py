# SPDX-License-Identifier: Apache-2.0
"""Pictures of scheduler traces, drawn from the events that lie with the run."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hil.base.errors import ConfigError
from hil.model import RunRecord
from hil.reports.allure.trace.picture import draw_trace
from hil.reports.trace_notes import events_file
from hil.store.files import disk_error, replace_file
from hil.trace.files import read_stored


def draw_pictures(run_path: Path, records: Iterable[RunRecord]) -> None:
    """Draw each trace beside its events. One that cannot be read is left out. Raises RigError (disk)."""
    for record in records:
        path = events_file(run_path, record)
        if path is None:
            continue
        with suppress(ConfigError):
            picture = draw_trace(read_stored(path))
            try:
                replace_file(path.with_suffix(".svg"), picture)
            except OSError as error:
                raise disk_error(f"could not write {path.with_suffix('.svg')}", error, "the trace") from error
