"""When a board was out: runs in a row in which the rig failed on it, up to the next sound one. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hil.boards.health.types import BoardRun, RunHealth

RIG = "rig"  # whose faults are the rack's own (hil.base.errors)

Part = tuple[RunHealth, BoardRun]


@dataclass(frozen=True)
class Outage:
    """``ended_utc`` is the start of the next sound run, "" while the board is still down."""

    since_utc: str
    runs: int
    ended_utc: str = ""


def took_part(board: BoardRun) -> bool:
    """Say whether a run tells of the board: it measured, or something went wrong with it."""
    return board.state in ("measured", "faulted")


def rig_failed(board: BoardRun) -> bool:
    """Say whether the rig failed on the board; a panic is the firmware's, and the board was sound."""
    return took_part(board) and board.faults.get(RIG, 0) > 0


def outages_of(parts: Iterable[Part]) -> list[Outage]:
    """Return a board's outages, the earliest first; ``parts`` are in the order of the runs' start.

    Runs that the board took no part in neither end an outage nor make one longer.
    """
    ended: list[Outage] = []
    current: Outage | None = None
    for run, board in parts:
        if rig_failed(board):
            current = Outage(current.since_utc, current.runs + 1) if current else Outage(run.started_utc, 1)
        elif current and took_part(board):
            ended.append(replace(current, ended_utc=run.started_utc))
            current = None
    return [*ended, current] if current else ended
