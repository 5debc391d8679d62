"""Which sessions of the history the reported runs are shown against: as comparable() says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hil.metrics.sessions import History, SeriesHistory
from hil.reports.history import comparable


def comparable_history(history: History, reported: Sequence[Mapping[str, Any]]) -> History:
    """Return the sessions of the same purpose up to the newest reported run, and their boot values.

    ``reported`` are the runs' lines. A reported run's own session is one of them.
    """
    own = {line["run_id"] for line in reported}
    sessions = [
        {"trigger": one.trigger, "started_utc": one.started_utc, "run_id": one.run_id, "number": number}
        for number, one in enumerate(history.sessions)
    ]
    kept = {one["number"] for one in comparable(sessions, reported)}
    kept |= {one["number"] for one in sessions if one["run_id"] in own}
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
