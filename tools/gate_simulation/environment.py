# SPDX-License-Identifier: Apache-2.0
"""A simulated rack: what scatters its boots, and what befalls it. Offsets are natural logarithms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tools.gate_simulation.model import COMMON, SAMPLES, TYPICAL, NoiseClass
from tools.gate_simulation.suite import LOSS_SHARE

STALL = (1.2, 3.0)  # times as slow is a boot that stalls, between these
BURST = 1.2  # times as slow is every board's boot of a moment with a burst
QUANTISED_MS = 20.0  # the median, where values are quantised


@dataclass(frozen=True)
class Environment:
    """A rack of ``boards``, in equal parts of ``chips``, and what befalls a pull request there.

    ``louder`` times the nights' deviation is that of the pull request's boots. ``tails`` is the law of a
    boot's offset; its scale is the noise's. ``modes`` is (share, offset) of boots that lie higher.
    ``scatter`` of what samples leave open is there; ``common`` of a boot's variance is its cases' together,
    all of it means one draw for all metrics. Boards drift by ``drift`` a boot, the first alone unless
    ``all_drift``; on the first board the candidate's slot is slower by ``odd``. ``stalls`` and ``bursts`` are
    shares of boots and of moments. Main has crept by ``creep`` over 30 nights before the pull request.
    """

    name: str
    noise: NoiseClass = TYPICAL
    boards: int = 4
    chips: int = 1
    louder: float = 1.0
    tails: Literal["normal", "t", "lognormal"] = "normal"
    modes: tuple[float, float] = (0.0, 0.0)
    scatter: float = 1.0
    common: float = COMMON
    samples: int = SAMPLES
    quantum_ms: float = 0.0
    stalls: float = 0.0
    bursts: float = 0.0
    drift: float = 0.0
    all_drift: bool = False
    odd: float = 0.0
    creep: float = 0.0
    loss_share: float = LOSS_SHARE

    @property
    def boards_a_chip(self) -> int:
        return self.boards // self.chips
