# SPDX-License-Identifier: Apache-2.0
"""Seeded boots of candidate and other, and histories, for tests of the gate's numerics."""

from __future__ import annotations

from typing import Any

import numpy as np

from hil.gate.compare.design import LOOKS, Design, Noise
from hil.gate.compare.noise import noise_of_arrays

BOOT, SESSION = 0.05, 0.03


# Looks of fewer boots of the other than of the candidate, as no schedule of ours has: the numerics take any.
UNEVEN_LOOKS = ((2, 1), (4, 2), (6, 3), (9, 4), (12, 6), (16, 8))


def design(looks: tuple[tuple[int, int], ...] = UNEVEN_LOOKS, **changes: Any) -> Design:
    values = {
        "alpha": 0.001,
        "beta": 0.05,
        "tolerance": float(np.log(1.1)),
        "min_effect": float(np.log(1.03)),
    }
    return Design(looks, **{**values, **changes})


def no_noise(comparisons: int, boards: int) -> Noise:
    """Return what is known of noise without a history."""
    nothing, none = np.full((comparisons, boards), np.nan), np.zeros((comparisons, boards))
    return Noise(nothing, nothing, nothing, none, nothing, none, none)


class Rig:
    """Boots that differ by BOOT, 5 % of them 3.5 times as much, and sessions by SESSION."""

    def __init__(self, seed: int, comparisons: int = 1, boards: int = 4) -> None:
        self.random = np.random.RandomState(seed)
        self.shape = (comparisons, boards)

    def boots(self, count: int) -> np.ndarray:
        shape = (*self.shape, count)
        bad = np.where(self.random.random_sample(shape) < 0.05, 3.5, 1.0)
        return np.asarray(self.random.normal(size=shape) * BOOT * bad)

    def history(self, sessions: int = 30, boots: int = 6) -> Noise:
        levels = self.random.normal(size=(*self.shape, sessions, 1)) * SESSION
        values = self.boots(sessions * boots).reshape(*self.shape, sessions, boots)
        return noise_of_arrays(values + levels)

    def run(
        self, slower: float = 0.0, creep: float = 0.0, looks: tuple[tuple[int, int], ...] = UNEVEN_LOOKS
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (candidate, other) of one session each: all of main has crept, the candidate is slower."""
        level = self.random.normal(size=(*self.shape, 1)) * SESSION + np.log1p(creep)
        of_candidate, of_other = looks[-1]
        return self.boots(of_candidate) + level + np.log1p(slower), self.boots(of_other) + level


def without_history(seed: int, comparisons: int, **run: Any) -> tuple[np.ndarray, np.ndarray, Noise]:
    rig = Rig(seed, comparisons)
    return (*rig.run(looks=LOOKS, **run), no_noise(comparisons, 4))
