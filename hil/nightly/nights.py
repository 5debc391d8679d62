"""The nights of a series: what was measured of it, and beside which reference firmware."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hil.history import History, SeriesHistory, Session
from hil.model import Scalar

TRIGGER = "nightly"
NOON = datetime.timedelta(hours=12)


@dataclass(frozen=True)
class Night:
    """One firmware on one board in one night (from noon to noon UTC; ``date`` is that of its evening).

    ``level`` is the natural logarithm of the median of the candidate's boots; ``ratios`` maps a reference
    image (SHA-256) to the level less that of its boots. ``reruled`` says that a reference was measured, but
    by other benchmark sources. ``conditions`` are of the board, or of no board of the session.
    """

    date: datetime.date
    commit: str
    firmware: str
    level: float
    ratios: Mapping[str, float] = field(default_factory=dict)
    reruled: bool = False
    conditions: Mapping[str, Scalar] = field(default_factory=dict)


def nights_of(history: History, series_id: str) -> list[Night]:
    """Return the nights of a series in order of time.

    Only what the trigger ``nightly`` measured of a commit without other changes counts. A night of which a
    median is not a positive number has no logarithm, and is left out.
    """
    candidate = history.series(series_id)
    if candidate is None:
        return []
    reference = history.series(series_id, "reference")
    board = series_id.split("/")[1]
    nights: list[Night] = []
    for sessions in _groups(history.sessions, candidate):
        level = _level(candidate, _of(candidate, sessions))
        if level is not None:
            last = history.sessions[sessions[-1]]
            firmware = str(candidate.firmware[_of(candidate, sessions)][-1])
            ratios, reruled = _ratios(candidate, reference, sessions)
            night = Night(
                _date(last), last.commit, firmware, level, ratios, reruled, _conditions(last, board)
            )
            nights.append(night)
    return nights


def _groups(sessions: Sequence[Session], series: SeriesHistory) -> Iterator[list[int]]:
    """Yield the sessions of each night and commit."""
    groups: dict[tuple[datetime.date, str], list[int]] = {}
    for index in dict.fromkeys(int(index) for index in series.session):
        session = sessions[index]
        if session.trigger == TRIGGER and not session.dirty:
            groups.setdefault((_date(session), session.commit), []).append(index)
    yield from groups.values()


def _date(session: Session) -> datetime.date:
    return (datetime.datetime.fromisoformat(session.started_utc) - NOON).date()


def _of(series: SeriesHistory, sessions: Sequence[int]) -> np.ndarray:
    return np.isin(series.session, sessions)


def _level(series: SeriesHistory, boots: np.ndarray) -> float | None:
    values = series.value[boots]
    middle = float(np.median(values)) if len(values) else math.nan
    return math.log(middle) if math.isfinite(middle) and middle > 0 else None


def _ratios(
    candidate: SeriesHistory, reference: SeriesHistory | None, sessions: Sequence[int]
) -> tuple[dict[str, float], bool]:
    """Return the level beside each reference, each from the sessions that measured both."""
    ratios: dict[str, float] = {}
    reruled = False
    if reference is None:
        return ratios, reruled
    for image in dict.fromkeys(str(image) for image in reference.firmware[_of(reference, sessions)]):
        beside = _of(reference, sessions) & (reference.firmware == image)
        own = _of(candidate, [int(session) for session in set(reference.session[beside].tolist())])
        if set(candidate.ruler[own]) != set(reference.ruler[beside]):
            reruled = True
            continue
        level, other = _level(candidate, own), _level(reference, beside)
        if level is not None and other is not None:
            ratios[image] = level - other
    return ratios, reruled


def _conditions(session: Session, board: str) -> dict[str, Scalar]:
    others = tuple(f"{name}." for name in session.boards if name != board)
    return {key: value for key, value in session.conditions.items() if not key.startswith(others)}
