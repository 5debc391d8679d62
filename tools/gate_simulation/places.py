# SPDX-License-Identifier: Apache-2.0
"""The place of each boot in the run of a board, in the product's own order, so that drifts fall alike."""

from __future__ import annotations

from functools import cache

import numpy as np

from hil.run.plan.looks import order

Looks = tuple[tuple[int, int], ...]


@cache
def places(looks: Looks, first: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the places (from 0) of the candidate's and the other's boots of a board.

    ``first`` is what the product draws by run and board: which of two equally good orders is taken.
    """
    roles = ("candidate", "base") if first else ("base", "candidate")
    placed = np.array([role for look in order(looks, roles) for role in look])
    return np.flatnonzero(placed == "candidate"), np.flatnonzero(placed != "candidate")


def places_of(looks: Looks, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places on each board, (pull requests, boards, boots), by what was drawn for it."""
    either = zip(places(looks, True), places(looks, False), strict=True)
    mine, base = (np.where(first[..., np.newaxis], one, two) for one, two in either)
    return mine, base
