# SPDX-License-Identifier: Apache-2.0
"""What the trend and the pages know of runs: the figures that the gate judged, as JSON has them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from hil.base.errors import RigError
from hil.base.flock import wait_for_lock
from hil.history.from_run import figures_of
from hil.history.summary import Summary
from hil.store import JudgedRun

LOCK_TIMEOUT_S = 60.0  # ten times what a large report takes
_HOLDER_CHARACTERS = 120

_Line = Mapping[str, Any]


def lines_of(runs: Iterable[Summary]) -> list[_Line]:
    """Return the figures of the runs of a history; those that were imported have none."""
    return [_line(run) for run in runs if run.outcome]


def line_of(run: JudgedRun) -> _Line:
    """Return the figures of a run."""
    return _line(figures_of(run))


def _line(run: Summary) -> _Line:
    others = ("schema", "health", "unchanged", "cases", "boot_values")
    head = {key: getattr(run, key) for key in run.__struct_fields__ if key not in others}
    return {**head, "cases": msgspec.to_builtins(run.cases)}


def with_runs(lines: Iterable[_Line], added: Sequence[_Line]) -> list[_Line]:
    """Return the lines with ``added`` in place of those of the same runs, in the order of their start."""
    again = {line["run_id"] for line in added}
    kept = [line for line in lines if line["run_id"] not in again]
    return sorted([*kept, *added], key=lambda line: (line["started_utc"], line["run_id"]))


def comparable(lines: Iterable[_Line], runs: Sequence[_Line]) -> list[_Line]:
    """Return the lines that ``runs`` are shown against: those of the same purpose, up to the newest of them.

    A pull request is shown against the nightly runs, because its own earlier commits are no baseline.
    """
    purposes = {"nightly" if line["trigger"] == "pr" else line["trigger"] for line in runs}
    newest = max((line["started_utc"] for line in runs), default="")
    return [line for line in lines if line["trigger"] in purposes and line["started_utc"] <= newest]


@contextmanager
def locked(folder: Path, *, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Hold ``folder`` against other processes that do the same; the kernel lets go when the process ends.

    Raises:
        RigError: another one holds it still after ``timeout_s`` seconds; the sentence names it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not wait_for_lock(descriptor, timeout_s=timeout_s, waiting=lambda: None):
            raise RigError(
                f"waited {timeout_s:.0f} s for {folder}, which is held by {_holder(descriptor)}.",
                next_step="let it end, or end it; then build the report: hil report build RUN.",
            )
        yield
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    """Return "process 4711 (python -m hil.reports build)" from the kernel's list of locks."""
    inode = f":{os.fstat(descriptor).st_ino}"
    with suppress(OSError):
        for words in map(str.split, Path("/proc/locks").read_text().splitlines()):
            if words[1] == "FLOCK" and words[5].endswith(inode):
                command = Path("/proc", words[4], "cmdline").read_text(errors="replace").replace("\0", " ")
                return f"process {words[4]} ({command.strip()[:_HOLDER_CHARACTERS]})"
    return "another process"
