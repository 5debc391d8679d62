# SPDX-License-Identifier: Apache-2.0
"""What is known of a rack's health: what follows from many runs.

When a board was out: runs in a row in which the rig failed on it, up to the next sound one. Pure.

Moments of runs: texts such as ``2026-11-20T22:12:57Z``.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from hil.history.summary import BoardInRun, Summary
from hil.model import Kind, Quarantine

RIG = "rig"  # whose faults are the rack's own (hil.base.errors)


@dataclass(frozen=True)
class BoardHealth:
    """A board over the window. Ratios are from 0 to 1, None where nothing was there to count.

    ``failure_ratio``: runs in which the rig failed on it, of those that it took part in. A recovery lasts
    from the start of the first of consecutive rig-faulted runs to the start of the next sound one;
    ``mean_time_to_recovery_s`` is the mean of those that ended in the window. An outage that lasts is none
    of them: ``down_since_utc`` is its start, "" where the board is up, and ``faults_in_a_row`` its runs.
    ``last_fault`` is the rig's latest on it in the window.
    """

    rack: str
    board: str
    kind: Kind
    target: str
    runs: int
    faulted_runs: int
    failure_ratio: float | None
    recoveries: int
    mean_time_to_recovery_s: float | None
    faults_in_a_row: int
    last_seen_utc: str
    last_fault: str = ""
    quarantine: Quarantine | None = None
    down_since_utc: str = ""


@dataclass(frozen=True)
class RackHealth:
    """A rack over the window of ``days``.

    ``infrastructure_faults`` counts every fault by its owner, ``failed_runs`` the runs with a fault of that
    owner; only the rig's are the rack's own. ``mean_time_to_recovery_s`` is over the ``recoveries`` of all of
    its boards.
    """

    rack: str
    days: int
    runs: int
    boards: tuple[BoardHealth, ...]
    infrastructure_faults: Mapping[str, int] = field(default_factory=dict)
    failed_runs: Mapping[str, int] = field(default_factory=dict)
    recoveries: int = 0
    mean_time_to_recovery_s: float | None = None

    @property
    def failure_ratio(self) -> float | None:
        """The share of runs in which the rig failed, on a board or as a whole; None without a run."""
        return self.failed_runs.get(RIG, 0) / self.runs if self.runs else None


Part = tuple[Summary, BoardInRun]


@dataclass(frozen=True)
class BoardOutage:
    """``ended_utc`` is the start of the next sound run, "" while the board is still down."""

    since_utc: str
    runs: int
    ended_utc: str = ""


def took_part(board: BoardInRun) -> bool:
    """Return whether a run tells of the board: it measured, or something went wrong with it."""
    return board.state in ("measured", "faulted")


def rig_failed(board: BoardInRun) -> bool:
    """Return whether the rig failed on the board; a panic is the firmware's, and the board was sound."""
    return took_part(board) and board.faults.get(RIG, 0) > 0


def outages_of(parts: Iterable[Part]) -> list[BoardOutage]:
    """Return a board's outages, the earliest first; ``parts`` are in the order of the runs' start.

    Runs that the board took no part in neither end an outage nor make one longer.
    """
    ended: list[BoardOutage] = []
    current: BoardOutage | None = None
    for run, board in parts:
        if rig_failed(board):
            current = (
                BoardOutage(current.since_utc, current.runs + 1)
                if current
                else BoardOutage(run.started_utc, 1)
            )
        elif current and took_part(board):
            ended.append(replace(current, ended_utc=run.started_utc))
            current = None
    return [*ended, current] if current else ended


DAY_S = 86_400.0


def unix_s(text: str) -> float | None:
    """Return a moment in seconds since 1970, one without an offset as UTC; None where ``text`` is none."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()


def in_order(runs: Iterable[Summary]) -> list[Summary]:
    """Return runs in the order of their start."""
    return sorted(runs, key=lambda run: (unix_s(run.started_utc) or 0.0, run.run_id))


def between_s(start: str, end: str) -> float | None:
    """Return how long it was from ``start`` to ``end``, at least 0; None where one of them is no moment."""
    first, last = unix_s(start), unix_s(end)
    return None if first is None or last is None else max(0.0, last - first)
