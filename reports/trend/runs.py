"""The runs of the trend: lines of metrics.jsonl and sessions of the history, joined by their run id."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hil.metrics.sessions import History, Session
from hil.model import Verdict

_BEFORE_ALL = datetime.datetime.min.replace(tzinfo=datetime.UTC)


class Reported(Protocol):
    """A run that the report is about: hil.reports.site.runs.StoredRun."""

    @property
    def path(self) -> Path: ...
    @property
    def info(self) -> Mapping[str, Any]: ...
    @property
    def verdict(self) -> Verdict: ...
    @property
    def line(self) -> Mapping[str, Any]: ...
    @property
    def run_id(self) -> str: ...
    @property
    def test_ids(self) -> Mapping[tuple[str, str], str]: ...


@dataclass(frozen=True)
class Run:
    """One run. ``line`` is None where only the history knows it, ``session`` (its position there) None where
    only metrics.jsonl does."""

    run_id: str
    started_utc: str
    commit: str
    dirty: bool
    rack: str
    trigger: str
    suite: str
    profile: str
    url: str
    reported: bool
    line: Mapping[str, Any] | None
    session: int | None

    @property
    def moment(self) -> datetime.datetime:
        return moment_of(self.started_utc)


def runs_of(
    lines: Sequence[Mapping[str, Any]], history: History, reported: Sequence[str], *, most: int
) -> tuple[tuple[Run, ...], int]:
    """Return the runs in order of time, and how many older ones were left out.

    The newest ``most`` of each rack stay, and those that are ``reported`` (run ids). A run in which nothing
    was measured is left out, unless it is reported.
    """
    sessions = {one.run_id: number for number, one in enumerate(history.sessions)}
    measured = [line for line in lines if line["cases"] or line["run_id"] in sessions or _is(line, reported)]
    found = [_of_line(line, sessions.get(line["run_id"]), reported=_is(line, reported)) for line in measured]
    known = {run.run_id for run in found}
    found += [
        _of_session(one, sessions[one.run_id], reported=one.run_id in reported)
        for one in history.sessions
        if one.run_id not in known
    ]
    found.sort(key=lambda run: (run.moment, run.run_id))
    kept = _newest(found, most)
    return tuple(kept), len(found) - len(kept)


def moment_of(started_utc: str) -> datetime.datetime:
    """Return when a run started; before all others where nothing tells."""
    try:
        found = datetime.datetime.fromisoformat(started_utc)
    except ValueError:
        return _BEFORE_ALL
    return found if found.tzinfo else found.replace(tzinfo=datetime.UTC)


def _is(line: Mapping[str, Any], reported: Sequence[str]) -> bool:
    return line["run_id"] in reported


def _newest(runs: Sequence[Run], most: int) -> list[Run]:
    left: dict[str, int] = {}
    kept = []
    for run in reversed(runs):
        left[run.rack] = left.get(run.rack, most) - 1
        if left[run.rack] >= 0 or run.reported:
            kept.append(run)
    return kept[::-1]


def _of_line(line: Mapping[str, Any], session: int | None, *, reported: bool) -> Run:
    return Run(
        run_id=line["run_id"],
        started_utc=line["started_utc"],
        commit=line["commit"],
        dirty=bool(line["dirty"]),
        rack=line["rack"],
        trigger=line["trigger"],
        suite=line["suite"],
        profile=str(line.get("profile") or ""),
        url=line["url"],
        reported=reported,
        line=line,
        session=session,
    )


def _of_session(session: Session, number: int, *, reported: bool) -> Run:
    return Run(
        run_id=session.run_id,
        started_utc=session.started_utc,
        commit=session.commit,
        dirty=session.dirty,
        rack=session.rack,
        trigger=session.trigger,
        suite=session.suite,
        profile=_profile_of(session),
        url="",
        reported=reported,
        line=None,
        session=number,
    )


def _profile_of(session: Session) -> str:
    """Return the profile of the virtual air, as the boards' conditions tell it; "" where the air is real."""
    told = {str(fact) for key, fact in session.conditions.items() if key.endswith(".air") and fact}
    return " | ".join(sorted(told))
