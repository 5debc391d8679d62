# SPDX-License-Identifier: Apache-2.0
"""The runs of the trend: figures and sessions of the history, joined by their run id.

What the trend is made of beside the runs: boot values of earlier runs, thresholds.

Which sessions of the history the reported runs are shown against: as comparable() says.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from hil.base.errors import ConfigError
from hil.base.numeric import np
from hil.base.paths import PROJECT_ROOT
from hil.base.untrusted import visible
from hil.history.files import read_past
from hil.history.loading import values_of
from hil.metrics.sessions import NO_HISTORY, BootSession, History, SeriesHistory
from hil.model import IMPORTED, Verdict, format_place
from hil.reports.allure.story import limits_of
from hil.reports.history import comparable, lines_of
from hil.reports.stored import by_name
from hil.store import JudgedRun, RunInfo
from hil.store.run_info import MOST_AUTHOR, MOST_TITLE
from hil.thresholds import Thresholds

_BEFORE_ALL = datetime.datetime.min.replace(tzinfo=datetime.UTC)


class ReportedRun(Protocol):
    """A run that the report is about: hil.reports.site.runs.ShownRun."""

    @property
    def run(self) -> JudgedRun: ...
    @property
    def path(self) -> Path: ...
    @property
    def info(self) -> RunInfo: ...
    @property
    def verdict(self) -> Verdict: ...
    @property
    def line(self) -> Mapping[str, Any]: ...
    @property
    def run_id(self) -> str: ...
    @property
    def test_ids(self) -> Mapping[tuple[str, str], str]: ...


@dataclass(frozen=True)
class TrendRun:
    """One run. ``line`` is None where its figures were imported, ``session`` (its position in the history)
    None where no boot values of it are kept."""

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
    product: str = ""
    title: str = ""  # of the commit
    author: str = ""

    @property
    def place(self) -> str:
        """Whose figures, and where measured, as a series' name begins."""
        return format_place(self.product, self.rack)

    @property
    def moment(self) -> datetime.datetime:
        return moment_of(self.started_utc)


def runs_of(
    lines: Sequence[Mapping[str, Any]], history: History, reported: Sequence[str], *, most: int
) -> tuple[tuple[TrendRun, ...], int]:
    """Return the runs in order of time, and how many older ones were left out.

    The newest ``most`` of each suite of a product on a rack stay, and those that are ``reported`` (run ids).
    A run in which nothing was measured is left out, unless it is reported.
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


def _newest(runs: Sequence[TrendRun], most: int) -> list[TrendRun]:
    left: dict[str, int] = {}
    kept = []
    for run in reversed(runs):
        of = f"{run.place}/{run.suite}"  # a night has a run for each bench; what was imported one a series
        left[of] = left.get(of, most) - 1
        if left[of] >= 0 or run.reported:
            kept.append(run)
    return kept[::-1]


def _of_line(line: Mapping[str, Any], session: int | None, *, reported: bool) -> TrendRun:
    return TrendRun(
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
        product=str(line.get("product") or ""),
        title=visible(line.get("title") or "", MOST_TITLE),
        author=visible(line.get("author") or "", MOST_AUTHOR),
    )


def _of_session(session: BootSession, number: int, *, reported: bool) -> TrendRun:
    return TrendRun(
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
        product=session.product,
    )


def _profile_of(session: BootSession) -> str:
    """Return the profile of the virtual air, as the boards' conditions tell it; "" where the air is real."""
    told = {str(fact) for key, fact in session.conditions.items() if key.endswith(".air") and fact}
    return " | ".join(sorted(told))


_CHECKOUT = PROJECT_ROOT


@dataclass(frozen=True)
class TrendSources:
    """``lines`` are the figures of earlier runs; ``notes`` say what could not be read, and the way out."""

    history: History = NO_HISTORY
    lines: Sequence[Mapping[str, Any]] = ()
    thresholds: Mapping[str, Thresholds] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_sources(folder: Path, runs: Sequence[ReportedRun]) -> TrendSources:
    """Read the history in ``folder``, and the thresholds of the newest run.

    What is damaged costs its part of the trend, and a note that names the file and the way out; it does not
    cost the report.
    """
    past = read_past(folder)
    notes = [f"The history is not whole: {_public(sentence, folder)}" for sentence in past.left_out]
    newest = max(runs, key=lambda run: (str(run.line["started_utc"]), run.run_id))
    thresholds: Mapping[str, Thresholds] = {}
    try:
        thresholds = limits_of(newest.run)
    except ConfigError as error:
        notes.append(f"The thresholds of the run are left out: {_public(str(error), folder)}")
    return TrendSources(values_of(past), lines_of(past.runs), thresholds, tuple(notes))


def _public(sentence: str, folder: Path) -> str:
    return by_name(sentence, folder).replace(f"{_CHECKOUT}/", "")


def comparable_history(history: History, reported: Sequence[Mapping[str, Any]]) -> History:
    """Return the sessions of the same purpose up to the newest reported run, and their boot values.

    ``reported`` are the runs' lines. A reported run's own session is one of them, and all that was imported.
    """
    own = {line["run_id"] for line in reported}
    sessions = [
        {"trigger": one.trigger, "started_utc": one.started_utc, "run_id": one.run_id, "number": number}
        for number, one in enumerate(history.sessions)
    ]
    kept = {one["number"] for one in comparable(sessions, reported)}
    kept |= {one["number"] for one in sessions if one["run_id"] in own or one["trigger"] == IMPORTED}
    return of_sessions(history, sorted(kept))


def of_sessions(history: History, kept: Sequence[int]) -> History:
    """Return a history of some sessions, named by their positions in ascending order."""
    if len(kept) == len(history.sessions):
        return history
    position = np.full(len(history.sessions), -1, dtype=np.intp)
    position[list(kept)] = np.arange(len(kept))
    entries = {}
    for key, entry in history.entries.items():
        rows = position[entry.session] >= 0
        if rows.any():
            entries[key] = _rows_of(entry, rows, position)
    return History(tuple(history.sessions[number] for number in kept), entries)


def _rows_of(entry: SeriesHistory, rows: np.ndarray, position: np.ndarray) -> SeriesHistory:
    return replace(
        entry,
        session=position[entry.session[rows]],
        boot=entry.boot[rows],
        value=entry.value[rows],
        samples=entry.samples[rows],
        hits=entry.hits[rows],
        ruler=entry.ruler[rows],
        firmware=entry.firmware[rows],
    )
