# SPDX-License-Identifier: Apache-2.0
"""How far a board's clock went beside the host's: an emulated chip's falls behind where the host is busy, and
a board's crystal drifts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from hil.model import Scalar

UPTIME = "uptime_us"  # of an end line's environment
TIMER_STEP_S = 1e-6
SLOW = 0.9  # of the host's time; crystals, and lines that wait in a buffer, are closer than that


@dataclass(frozen=True)
class Elapsed:
    """What the two clocks went between two ends of transfers of one boot."""

    board_s: float
    host_s: float

    @property
    def fell_behind(self) -> bool:
        return self.board_s < SLOW * self.host_s

    def __str__(self) -> str:
        return f"{self.board_s:.1f} s while the host's went {self.host_s:.1f} s"


class Pace:
    """Sets the moments of a board's end lines beside the host's."""

    def __init__(self) -> None:
        self._boot, self._board_s, self._host_s = "", 0.0, 0.0

    def elapsed(self, boot: str, environment: Mapping[str, Scalar], host_s: float) -> Elapsed | None:
        """Return what went by since the end before; None for a boot's first one, or without an uptime."""
        uptime_us = environment.get(UPTIME)
        if not isinstance(uptime_us, int):
            return None
        before, self._boot = self._boot, boot
        board_s, self._board_s = self._board_s, uptime_us / 1e6
        since_s, self._host_s = self._host_s, host_s
        return Elapsed(self._board_s - board_s, host_s - since_s) if boot == before else None


@dataclass(frozen=True)
class Exchange:
    """A board said what its timer shows: between these two moments of the host's monotonic clock. Seconds."""

    asked_s: float
    board_s: float
    answered_s: float

    @property
    def width_s(self) -> float:
        return self.answered_s - self.asked_s

    @property
    def middle_s(self) -> float:
        return (self.asked_s + self.answered_s) / 2


@dataclass(frozen=True)
class Drift:
    """How much faster than the host's clock a board's timer runs, in parts per million."""

    ppm: float
    uncertainty_ppm: float


def drift_between(first: Sequence[Exchange], last: Sequence[Exchange]) -> Drift:
    """Return the drift between two bursts of exchanges, each with at least one.

    The shortest exchange of each burst counts, as in NTP: it waited least. What a question and its answer
    take at least cancels out, for it is the same at both ends. What the exchanges of a burst took beyond the
    shortest of all, half of it at most, may be all on one way: the median of that is its uncertainty.
    """
    least_s = min(one.width_s for one in (*first, *last))
    begin, end = (min(burst, key=lambda one: one.width_s) for burst in (first, last))
    host_s = end.middle_s - begin.middle_s
    unknown_s = sum(median(one.width_s for one in burst) - least_s for burst in (first, last)) / 2
    drift = (end.board_s - begin.board_s) / host_s - 1.0
    return Drift(1e6 * drift, 1e6 * (unknown_s + 2 * TIMER_STEP_S) / host_s)
