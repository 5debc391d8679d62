# SPDX-License-Identifier: Apache-2.0
"""Seeded boots of candidate and other, for tests of the gate's numerics."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hil.gate.decision import Design, Seen
from hil.gate.fit import FittedBoot, look_at

BOOT, SESSION = 0.05, 0.03


LOOKS = ((3, 3), (6, 6), (10, 10), (20, 20))
# Looks of fewer boots of the other than of the candidate, as no schedule of ours has: the numerics take any.
UNEVEN_LOOKS = ((2, 1), (4, 2), (6, 3), (9, 4), (12, 6), (16, 8))


def design(looks: tuple[tuple[int, int], ...] = UNEVEN_LOOKS, **changes: Any) -> Design:
    values = {
        "alpha": 0.001,
        "beta": 0.05,
        "tolerance": float(np.log(1.1)),
        "min_effect": float(np.log(1.03)),
        "blind_below": float(np.log(1.2)),
    }
    return Design(looks, **{**values, **changes})


class Rig:
    """Boots that differ by BOOT, 5 % of them 3.5 times as much, and sessions by SESSION."""

    def __init__(self, seed: int, comparisons: int = 1, boards: int = 4) -> None:
        self.random = np.random.RandomState(seed)
        self.shape = (comparisons, boards)

    def boots(self, count: int) -> np.ndarray:
        shape = (*self.shape, count)
        bad = np.where(self.random.random_sample(shape) < 0.05, 3.5, 1.0)
        return np.asarray(self.random.normal(size=shape) * BOOT * bad)

    def run(
        self, slower: float = 0.0, creep: float = 0.0, looks: tuple[tuple[int, int], ...] = UNEVEN_LOOKS
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (candidate, other) of one session each: all of main has crept, the candidate is slower."""
        level = self.random.normal(size=(*self.shape, 1)) * SESSION + np.log1p(creep)
        of_candidate, of_other = looks[-1]
        return self.boots(of_candidate) + level + np.log1p(slower), self.boots(of_other) + level


class Decision(NamedTuple):
    """What was seen at the look, from 1, at which a comparison was decided, or at the last one."""

    seen: Seen
    look: int

    @property
    def state(self) -> str:
        return self.seen.state


def decide(candidate: np.ndarray, other: np.ndarray, design: Design) -> list[Decision]:
    """Decide comparisons, (R, boards, boots) each, by the looks that their boots reach."""
    return [_first(one, two, design) for one, two in zip(candidate.tolist(), other.tolist(), strict=True)]


def in_turns(candidate: Sequence[float], other: Sequence[float], slots: bool = False) -> list[FittedBoot]:
    """Return the boots of a board, the other's among the candidate's: C B B C, and so on.

    With ``slots`` the images lie in each other's slots in the second half.
    """
    roles = _roles(len(candidate), len(other))
    values = {True: iter(candidate), False: iter(other)}
    return [
        FittedBoot(
            place, role, next(values[role]), f"ota_{int(role ^ (2 * place >= len(roles)))}" if slots else ""
        )
        for place, role in enumerate(roles)
    ]


@functools.lru_cache
def _roles(candidates: int, others: int) -> list[bool]:
    """Return the role of each boot of a board, in order: True for the candidate."""
    roles = [True] * candidates
    for number in range(others):
        roles.insert(min(2 * number + 1 + number % 2, len(roles)), False)
    return roles


def _first(candidate: list[list[float]], other: list[list[float]], design: Design) -> Decision:
    found = Decision(Seen(), 0)
    whole = [in_turns(one, two) for one, two in zip(candidate, other, strict=True)]
    for number, (mine, others) in enumerate(design.looks, start=1):
        if mine > len(candidate[0]) or others > len(other[0]):
            break
        boards = [until(boots, mine, others) for boots in whole]
        found = Decision(look_at(boards, design, number), number)
        if found.state != "undecided":
            break
    return found


def until(boots: Sequence[FittedBoot], candidates: int, others: int) -> list[FittedBoot]:
    """Return the first so many boots of each role."""
    mine = [boot for boot in boots if boot.is_candidate][:candidates]
    return sorted([*mine, *[boot for boot in boots if not boot.is_candidate][:others]])
