# SPDX-License-Identifier: Apache-2.0
"""What came out of a situation: by pull request, for our gate and for every other rule."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hil.gate.compare.sequential import INCONCLUSIVE, PASS, REGRESSED, UNDECIDED
from tests.tools.gate_simulation.suite import INDEX, Effect


@dataclass(frozen=True)
class Verdicts:
    """Our gate's: ``state`` and ``look`` (from 0) are (pull requests, metrics); the rest one a pull request.

    ``boots`` are a board; ``named`` says that the first board was named as odd in some metric,
    ``drifting`` (1.0 or 0.0, NaN where it was not asked) that it was named as drifting.
    """

    state: np.ndarray
    look: np.ndarray
    boots: np.ndarray
    seconds: np.ndarray
    named: np.ndarray
    drifting: np.ndarray

    @classmethod
    def joined(cls, parts: list[Verdicts]) -> Verdicts:
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__annotations__))

    @property
    def blocked(self) -> np.ndarray:
        return np.asarray((self.state == REGRESSED).any(axis=1))

    @property
    def inconclusive(self) -> np.ndarray:
        undecided = (self.state == INCONCLUSIVE) | (self.state == UNDECIDED)
        return np.asarray(undecided.any(axis=1) & ~self.blocked)

    def caught(self, metric: str) -> np.ndarray:
        return np.asarray(self.state[:, INDEX[metric]] == REGRESSED)

    def passed(self, metric: str) -> np.ndarray:
        return np.asarray(self.state[:, INDEX[metric]] == PASS)


@dataclass(frozen=True)
class Share:
    """A share of simulated pull requests; ``of`` 0 where a rule has nothing to go by."""

    hits: int
    of: int

    @classmethod
    def among(cls, flags: np.ndarray) -> Share:
        return cls(int(np.count_nonzero(flags)), len(flags))

    @property
    def value(self) -> float:
        return self.hits / self.of if self.of else float("nan")

    @property
    def error(self) -> float:
        """The standard error of the simulation, as if there were one hit and one miss more."""
        share = (self.hits + 1) / (self.of + 2)
        return float(np.sqrt(share * (1 - share) / (self.of + 2)))

    def __str__(self) -> str:
        if not self.of:
            return "–"
        return "100" if self.hits == self.of else f"{100 * self.value:.1f}"


@dataclass(frozen=True)
class Situation:
    """One row of the table. ``scores`` of a rule are the highest of its family where nothing has changed,
    else those of the metric that should tell."""

    name: str
    effect: Effect
    ours: Verdicts
    boots: int
    scores: dict[str, np.ndarray] = field(default_factory=dict)

    def our_share(self) -> Share:
        """Return how many pull requests our gate blocks; where one metric should tell, by that."""
        return Share.among(
            self.ours.blocked if self.effect.unchanged else self.ours.caught(self.effect.metric)
        )

    def share(self, rule: str, threshold: float) -> Share:
        scores = self.scores.get(rule, np.empty(0))
        return Share.among(scores > threshold)
