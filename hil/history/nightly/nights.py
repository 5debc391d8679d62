# SPDX-License-Identifier: Apache-2.0
"""The nights of a series: what was measured of it, and beside which reference firmware."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hil.base.numeric import np
from hil.metrics.sessions import BootSession, History, SeriesHistory
from hil.model import IMPORTED, Scalar, SeriesId

TRIGGER = "nightly"
COUNTED = (TRIGGER, IMPORTED)  # which are never of one series: imported ones have a rack of their own


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

    Only what the trigger ``nightly`` measured of a commit without other changes counts, and what was
    imported; of an emulated board only on the network of its last night. A night of which a median is not a
    positive number has no logarithm, and is left out.
    """
    return NightReader(history).nights(series_id)


class NightReader:
    """The nights of any series of one history; what its sessions say is read once for all of them."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._keys = [
            (_date(session), session.commit) if session.trigger in COUNTED and not session.dirty else None
            for session in history.sessions
        ]
        self._conditions: dict[tuple[int, str], Mapping[str, Scalar]] = {}

    def nights(self, series_id: str, last: int | None = None) -> list[Night]:
        """Return the nights of a series as nights_of() does, the ``last`` ones or all."""
        found = self._history.series(series_id)
        if found is None:
            return []
        candidate, reference = _Rows(found), _rows(self._history.series(series_id, "reference"))
        board = SeriesId.parse(series_id).board
        nights: list[Night] = []
        for (date, commit), sessions in reversed(self._groups(candidate).items()):
            if last is not None and len(nights) >= last:
                break
            level = _level(candidate.values(sessions))
            if level is not None:
                image = str(candidate.firmware(sessions)[-1])
                ratios, reruled = _ratios(candidate, reference, sessions)
                around = self._conditions_of(sessions[-1], board)
                if nights and _network(around, board) != _network(nights[0].conditions, board):
                    continue
                nights.append(Night(date, commit, image, level, ratios, reruled, around))
        return nights[::-1]

    def _groups(self, series: _Rows) -> dict[tuple[datetime.date, str], list[int]]:
        """Return the sessions of each night and commit."""
        groups: dict[tuple[datetime.date, str], list[int]] = {}
        for session in series.sessions:
            key = self._keys[session]
            if key is not None:
                groups.setdefault(key, []).append(session)
        return groups

    def _conditions_of(self, session: int, board: str) -> Mapping[str, Scalar]:
        if (session, board) not in self._conditions:
            self._conditions[session, board] = _conditions(self._history.sessions[session], board)
        return self._conditions[session, board]


def _network(conditions: Mapping[str, Scalar], board: str) -> Scalar:
    """Return which network an emulated board had; before records said it there was one."""
    return conditions.get(f"{board}.network", "openeth")


class _Rows:
    """The rows of a series by session: they lie beside each other, as a series is in order of sessions."""

    def __init__(self, series: SeriesHistory) -> None:
        self._values, self._firmware = series.value.tolist(), series.firmware.tolist()
        self._rulers = series.ruler.tolist()
        starts = np.flatnonzero(np.diff(series.session, prepend=-1)).tolist()
        ends = [*starts[1:], len(series)]
        found = series.session[starts].tolist()
        self._spans = dict(zip(found, zip(starts, ends, strict=True), strict=True))

    @property
    def sessions(self) -> Iterable[int]:
        return self._spans

    def values(self, sessions: Iterable[int]) -> list[float]:
        return self._cut(self._values, sessions)

    def firmware(self, sessions: Iterable[int]) -> list[str]:
        return self._cut(self._firmware, sessions)

    def rulers(self, sessions: Iterable[int]) -> list[str]:
        return self._cut(self._rulers, sessions)

    def images(self, sessions: Iterable[int]) -> dict[str, list[tuple[int, float, str]]]:
        """Return session, value and ruler of the boots of each image."""
        found: dict[str, list[tuple[int, float, str]]] = {}
        for session in sessions:
            for row in range(*self._spans.get(session, (0, 0))):
                boot = (session, self._values[row], self._rulers[row])
                found.setdefault(self._firmware[row], []).append(boot)
        return found

    def _cut(self, column: Sequence[Any], sessions: Iterable[int]) -> list[Any]:
        spans = [self._spans[session] for session in sessions if session in self._spans]
        return [value for start, end in spans for value in column[start:end]]


def _rows(series: SeriesHistory | None) -> _Rows | None:
    return None if series is None else _Rows(series)


def _date(session: BootSession) -> datetime.date:
    return (datetime.datetime.fromisoformat(session.started_utc) - NOON).date()


def _level(values: Sequence[float]) -> float | None:
    """Return the logarithm of the median, None where it has none."""
    if not values or any(map(math.isnan, values)):
        return None
    ordered, half = sorted(values), len(values) // 2
    middle = ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2
    return math.log(middle) if math.isfinite(middle) and middle > 0 else None


def _ratios(
    candidate: _Rows, reference: _Rows | None, sessions: Sequence[int]
) -> tuple[dict[str, float], bool]:
    """Return the level beside each reference, each from the sessions that measured both."""
    ratios: dict[str, float] = {}
    reruled = False
    if reference is None:
        return ratios, reruled
    for image, boots in reference.images(sessions).items():
        own = dict.fromkeys(session for session, _value, _ruler in boots)
        if set(candidate.rulers(own)) != {ruler for _session, _value, ruler in boots}:
            reruled = True
            continue
        level, other = _level(candidate.values(own)), _level([value for _session, value, _ruler in boots])
        if level is not None and other is not None:
            ratios[str(image)] = level - other
    return ratios, reruled


def _conditions(session: BootSession, board: str) -> dict[str, Scalar]:
    others = tuple(f"{name}." for name in session.boards if name != board)
    return {key: value for key, value in session.conditions.items() if not key.startswith(others)}
