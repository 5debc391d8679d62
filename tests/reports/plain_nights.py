# SPDX-License-Identifier: Apache-2.0
"""The nights of a series, told boot by boot: hil.history.nightly.survey, which is faster, must agree."""

from __future__ import annotations

import datetime
import math

import numpy as np

from hil.history.nightly.nights import NOON, TRIGGER, Night
from hil.metrics.sessions import History, SeriesHistory


def plain_nights(history: History, series_id: str) -> list[Night]:
    """Return what nights_of() returns, by looking at every boot for every night."""
    candidate = history.series(series_id)
    reference = history.series(series_id, "reference")
    board = series_id.split("/")[1]
    groups: dict[tuple[datetime.date, str], list[int]] = {}
    for index in [] if candidate is None else dict.fromkeys(candidate.session.tolist()):
        session = history.sessions[index]
        if session.trigger == TRIGGER and not session.dirty:
            date = (datetime.datetime.fromisoformat(session.started_utc) - NOON).date()
            groups.setdefault((date, session.commit), []).append(index)
    nights = []
    for (date, commit), sessions in groups.items():
        assert candidate is not None
        own = np.isin(candidate.session, sessions)
        level = _level(candidate, own)
        if level is None:
            continue
        last = history.sessions[sessions[-1]]
        others = tuple(f"{name}." for name in last.boards if name != board)
        conditions = {key: fact for key, fact in last.conditions.items() if not key.startswith(others)}
        ratios, reruled = _ratios(candidate, reference, sessions)
        image = str(candidate.firmware[own][-1])
        nights.append(Night(date, commit, image, level, ratios, reruled, conditions))
    return nights


def _level(series: SeriesHistory, boots: np.ndarray) -> float | None:
    values = series.value[boots]
    middle = float(np.median(values)) if len(values) else math.nan
    return math.log(middle) if math.isfinite(middle) and middle > 0 else None


def _ratios(
    candidate: SeriesHistory, reference: SeriesHistory | None, sessions: list[int]
) -> tuple[dict[str, float], bool]:
    ratios: dict[str, float] = {}
    reruled = False
    if reference is None:
        return ratios, reruled
    here = np.isin(reference.session, sessions)
    for image in dict.fromkeys(str(image) for image in reference.firmware[here]):
        beside = here & (reference.firmware == image)
        own = np.isin(candidate.session, reference.session[beside])
        if set(candidate.ruler[own]) != set(reference.ruler[beside]):
            reruled = True
            continue
        level, other = _level(candidate, own), _level(reference, beside)
        if level is not None and other is not None:
            ratios[image] = level - other
    return ratios, reruled
