# SPDX-License-Identifier: Apache-2.0
"""How far a board's clock went beside the host's: an emulated chip's falls behind where the host is busy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hil.model import Scalar

UPTIME = "uptime_us"  # of an end line's environment
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


class ClockPace:
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
