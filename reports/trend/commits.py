# SPDX-License-Identifier: Apache-2.0
"""The commit that an event began with, as people know it: title, author, number, diff.

Runs noted title and author when they measured. Where none did, and for the number, the repository is asked;
what neither knows stays empty, for made-up commits and shallow clones are no error.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hil.base.git import count_between
from hil.base.paths import PROJECT_ROOT
from hil.history.nightly.events import NightEvent
from hil.metrics.sessions import NO_HISTORY
from hil.reports.trend.runs import TrendRun, runs_of
from hil.store.run_info import commit_words

_COMMIT = re.compile(r"[0-9a-f]{40}")
_RUN_PAGE = re.compile(r"(https://[\w.:-]+/[\w.-]+/[\w.-]+)/actions/runs/\d+")


def commit_json(
    good: str, bad: str, runs: Sequence[TrendRun], repository: Path | None = PROJECT_ROOT
) -> dict[str, Any]:
    """Return ``title``, ``author``, ``count`` (0: unknown) and ``diff`` (an address) of ``good..bad``."""
    own = [run for run in runs if bad and run.commit == bad]
    noted = ({"title": run.title, "author": run.author} for run in own if run.title)
    words: Mapping[str, str] | None = next(noted, None)
    asked = repository if _COMMIT.fullmatch(bad) else None
    if words is None:
        words = commit_words(asked, bad) if asked else {}
    return {
        "title": words.get("title", ""),
        "author": words.get("author", ""),
        "count": count_between(asked, good, bad) if asked and _COMMIT.fullmatch(good) else 0,
        "diff": next(filter(None, (_diff(run.url, good, bad) for run in own)), ""),
    }


def commits_of(
    events: Sequence[NightEvent], lines: Sequence[Mapping[str, Any]]
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return commit_json() by (good, bad) of events that name commits; ``lines`` are those of the history."""
    named = {(event.good, event.bad) for event in events if event.bad}
    wanted = {bad for _good, bad in named}
    runs, _ = runs_of([one for one in lines if one.get("commit") in wanted], NO_HISTORY, [], most=sys.maxsize)
    return {(good, bad): commit_json(good, bad, runs) for good, bad in named}


def _diff(url: str, good: str, bad: str) -> str:
    """Return the page of a workflow run's repository that compares two commits."""
    page = _RUN_PAGE.fullmatch(url)
    return f"{page[1]}/compare/{good}...{bad}" if page and good else ""
