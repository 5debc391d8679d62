# SPDX-License-Identifier: Apache-2.0
"""Judged runs for tests of what follows a verdict: real records through the real gate, as on disk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hil.model import Entry, RunRecord
from hil.reports.allure import complete_results
from hil.reports.summary import render_markdown
from hil.store import RunDirectory, read_judged_run, time_in
from tests.judging import judge
from tests.make_records import leave_run, publish_record, publish_thresholds

BOARDS = ("v1", "v2")
CASES: tuple[dict[str, str], ...] = ({}, {"transport": "tls"})


def healthy(latency_ms: float = 7.0) -> list[RunRecord]:
    """Return what a small run measures: two boards, two cases; ``latency_ms`` is of v2 over TLS."""
    slow = ("v2", CASES[1])
    return [
        publish_record(board=name, overrides=case, latency_ms=latency_ms if (name, case) == slow else 7.0)
        for name in BOARDS
        for case in CASES
    ]


def store_run(
    out: Path, run_id: str, entries: Iterable[Entry], *, commit: str = "a" * 40, **info: Any
) -> Path:
    """Leave on disk what a run leaves, Allure results included; return its folder.

    ``run_id`` starts with the time of the run; ``info`` adds to run.json.
    """
    facts = {"run_id": run_id, "started_utc": time_in(run_id), "git": {"commit": commit, "dirty": False}}
    own = [replace(entry, run_id=run_id) for entry in entries]
    path = leave_run(out, own, **{**facts, **info}).path
    rejudge(path)
    return path


def rejudge(path: Path) -> None:
    """Judge the run in ``path``, and complete what follows from the verdict."""
    directory = RunDirectory.open(path)
    journal = directory.read()
    verdict = judge(journal.entries, {"publish": publish_thresholds()})
    directory.write_verdict(verdict)
    directory.write_summary(render_markdown(directory.read_info(), verdict, journal.records))
    complete_results(read_judged_run(path))
