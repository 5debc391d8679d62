# SPDX-License-Identifier: Apache-2.0
"""What came out of a situation: by pull request, for our gate and for every other rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

import numpy as np

from hil.gate.compare.values import State
from tools.gate_simulation.suite import INDEX, Effect

STATES: tuple[State, ...] = get_args(State)
UNDECIDED, PASS, REGRESSED, IMPROVED = range(len(STATES))


@dataclass(frozen=True)
class Verdicts:
    """Our gate's: ``state`` and ``candidate_boots`` are (pull requests, decisions), the metrics of the first
    chip first; the rest one a pull request.

    ``candidate_boots`` are of all boards of the chip when it was decided, ``boots`` a board's of both roles;
    ``named`` says that the first board was named as odd in some metric, ``drifting`` (1.0 or 0.0, NaN where
    it was not asked) that it was named as drifting.
    """

    state: np.ndarray
    candidate_boots: np.ndarray
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
    def undecided(self) -> np.ndarray:
        """Say where any metric is."""
        return np.asarray((self.state == UNDECIDED).any(axis=1))

    def caught(self, metric: str) -> np.ndarray:
        return np.asarray(self.state[:, INDEX[metric]] == REGRESSED)

    def passed(self, metric: str) -> np.ndarray:
        return np.isin(self.state[:, INDEX[metric]], (PASS, IMPROVED))

    def improved(self, metric: str) -> np.ndarray:
        return np.asarray(self.state[:, INDEX[metric]] == IMPROVED)


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

    def our_passes(self) -> Share:
        """Return how many pass, by all metrics; where one should tell, by that."""
        if self.effect.unchanged:
            return Share.among(~self.ours.blocked & ~self.ours.undecided)
        return Share.among(self.ours.passed(self.effect.metric))

    def share(self, rule: str, threshold: float) -> Share:
        scores = self.scores.get(rule, np.empty(0))
        return Share.among(scores > threshold)
