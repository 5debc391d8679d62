# SPDX-License-Identifier: Apache-2.0
"""What a competing rule may look at: the nights' values, and as many boots as our gate used on average."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tools.gate_simulation.draws import CANDIDATE_BOOTS, Draw
from tools.gate_simulation.model import BOOTS_A_NIGHT
from tools.gate_simulation.suite import DATAGRAMS, INDEX, Effect

LOSS = INDEX["stream/loss"]


def summary(values: np.ndarray) -> np.ndarray:
    """Return one logarithm a metric: median over boots (loss: mean share), mean over boards.

    ``values`` is (pull requests, metrics, boards, …, boots). To average over boards favours rules that judge
    one value a run: they get one series of four boards instead of four noisier ones.
    """
    middle = np.median(values, axis=-1).mean(axis=2)
    share = (values[:, LOSS].mean(axis=-1).mean(axis=1) + 0.5 / values.shape[-1]) / DATAGRAMS
    middle[:, LOSS] = np.log(share)
    return np.asarray(middle)


@dataclass(frozen=True)
class Nights:
    """What is stored of the nights, (pull requests, metrics, nights), logarithms.

    ``ratio`` is of half a night's boots against the other half, which ran a frozen reference firmware.
    """

    value: np.ndarray
    ratio: np.ndarray

    @classmethod
    def of(cls, history: np.ndarray) -> Nights:
        """Return them of a history, (pull requests, metrics, boards, nights, boots)."""
        half = BOOTS_A_NIGHT // 2
        return cls(summary(history), summary(history[..., :half]) - summary(history[..., half:]))

    def first(self, count: int) -> Nights:
        return Nights(self.value[:count], self.ratio[:count])


@dataclass(frozen=True)
class Evidence:
    """A pull request's boots under an effect; ``boots`` a board, of candidate and base together."""

    draw: Draw
    nights: Nights
    effect: Effect
    boots: int

    @property
    def half(self) -> int:
        return max(2, round(self.boots / 2))

    def value(self, metrics: list[int]) -> np.ndarray:
        """Return one value a metric, in its unit, all boots given to the candidate."""
        boots = min(self.boots, CANDIDATE_BOOTS)
        candidate, _ = self.draw.run(((boots, 0),), self.effect)
        return np.asarray(np.exp(summary(candidate)[:, metrics]))

    def history(self, metrics: list[int]) -> np.ndarray:
        """Return the nights' values in the metrics' units, (pull requests, metrics, nights)."""
        return np.asarray(np.exp(self.nights.value[:, metrics]))

    def pair(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the boots of candidate and base, half of the boots each, in the product's order."""
        return self.draw.run(((self.half, self.half),), self.effect)
