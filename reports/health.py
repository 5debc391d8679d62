"""A rack's health over the runs: what a run says of it joins ``out/history/health.jsonl``."""

from __future__ import annotations

from pathlib import Path

from hil.boards.health import RunHealth, health_of, read_lines, with_runs, write_lines
from hil.reports.history import appending
from hil.store import StoredRun


def append_run(path: Path, run: StoredRun) -> RunHealth:
    """Put a run into the file ``path``, in place of its earlier line; return what it says.

    Raises:
        ConfigError: a line of the file is damaged.
        RigError: the disk does not take it; the file is as it was.
    """
    said = health_of(run)
    with appending(path, said.run_id):
        write_lines(path, with_runs(read_lines(path), [said]))
    return said
