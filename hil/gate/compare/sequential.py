# SPDX-License-Identifier: Apache-2.0
"""A comparison that grows: what is known after each look, and the decision, which freezes when it is made.

Arrays have a leading axis R of independent comparisons, B boards and K boots; a boot that is not there is
NaN. Values are on the metric's scale, "larger is worse" already, so that every test is one-sided.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from hil.gate.compare.design import (
    IMPROVED,
    INCONCLUSIVE,
    LOOKS,
    PASS,
    REGRESSED,
    UNDECIDED,
    Decisions,
    Design,
    Noise,
)
from hil.gate.compare.looking import FEWEST_BOOTS, FEWEST_SESSIONS, Look, Looks

__all__ = [
    "FEWEST_BOOTS",
    "FEWEST_SESSIONS",
    "IMPROVED",
    "INCONCLUSIVE",
    "LOOKS",
    "PASS",
    "REGRESSED",
    "UNDECIDED",
    "Decisions",
    "Design",
    "Noise",
    "Trace",
    "blank",
    "decide",
    "trace",
]


LEAST_ERRORS = 2.0  # by which a regression must stand out without any one of several boards
APART_ERRORS = 0.5  # and by so many more than those by which that board lies above the others


@dataclass(frozen=True)
class Trace:
    """What each look would say if none ended the comparison: (R, looks), NaN where a look is not reached.

    ``difference`` ± ``boundary`` * ``error`` is the repeated confidence interval of that look. All looks
    together hold the truth with probability 1 - 2 alpha (of the design) or more, whenever one stops.
    """

    difference: np.ndarray
    error: np.ndarray
    boundary: np.ndarray
    pass_boundary: np.ndarray


def decide(candidate: np.ndarray, other: np.ndarray, noise: Noise, design: Design) -> Decisions:
    """Go through the looks for which there is data, and freeze each comparison at its first decision.

    ``candidate`` is (R, B, Kc), ``other`` (R, B, Ko), boots by their place in the plan: one that was lost is
    NaN, one whose value was never seen infinite. A look is reached when at least one board has the last boot
    of either role that it asks for; the other boards count with what they have before that. The boot loop
    waits for all boards after each look, so that one with less has failed, and a replay finds the same.

    Regressed: the difference exceeds its error by the boundary, and ``min_effect``, and without any one of
    several boards still LEAST_ERRORS errors, more where that board lies apart: no board blocks alone. Pass:
    it is below ``tolerance`` by as many errors as the boundary of passing says. Improved: it passes, and is
    better by the mirrored test. Regressed goes first. The last look without a decision is inconclusive, and
    boards that contradict each other decide nothing.

    Where the history knows each board's noise (from FEWEST_SESSIONS sessions), it is used, with the epoch's
    mean as an anchor; elsewhere Student's t of this session's boots, with FEWEST_BOOTS of each role or more.
    ``low`` and ``high`` are of level 1 - 2 alpha; ``smallest_effect`` is found with 80 % power at the last
    look, by the normal approximation (boundary + 0.84 errors) and not below ``min_effect`` + 0.84 errors.
    """
    found = blank(*candidate.shape[:2])
    for rows, looks in _kinds(candidate, other, noise, design):
        undecided = np.ones(len(rows), dtype=bool)
        for number in range(len(design.looks)):
            here = np.flatnonzero(undecided & looks.reached[:, number])
            if not len(here):
                continue
            look = looks.at(number, here)
            state = judge(look, design, last=number == len(design.looks) - 1)
            write(found, rows[here], look, state, number)
            undecided[here] = state == UNDECIDED
    return found


def trace(candidate: np.ndarray, other: np.ndarray, noise: Noise, design: Design) -> Trace:
    """Return what each look says, without deciding: for simulations and calibration."""
    shape = (len(candidate), len(design.looks))
    found = Trace(*(np.full(shape, np.nan) for _ in fields(Trace)))
    for rows, looks in _kinds(candidate, other, noise, design):
        for number in range(len(design.looks)):
            here = np.flatnonzero(looks.reached[:, number])
            look = looks.at(number, here)
            for field in fields(Trace):
                getattr(found, field.name)[rows[here], number] = getattr(look, field.name)
    return found


def _kinds(
    candidate: np.ndarray, other: np.ndarray, noise: Noise, design: Design
) -> list[tuple[np.ndarray, Looks]]:
    """Return the comparisons of which the noise is known, and the others, each with their looks."""
    candidate, other = np.asarray(candidate, dtype=float), np.asarray(other, dtype=float)
    known = Looks.known(candidate, other, noise, design)
    kinds = ((np.flatnonzero(known), True), (np.flatnonzero(~known), False))
    return [
        (rows, Looks(candidate[rows], other[rows], noise.of(rows), design, anchors=anchors))
        for rows, anchors in kinds
        if len(rows)
    ]


def judge(
    look: Look, design: Design, *, last: bool, z: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
) -> np.ndarray:
    """Return the state of each comparison at one look.

    ``z`` says by how many errors it is worse, better and below the tolerance, where this is not plainly the
    difference over its error.
    """
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        valid = look.valid & np.isfinite(look.difference / look.error) & np.isfinite(look.boundary)
        error = np.where(valid, look.error, 1.0)
        difference = np.where(valid, look.difference, 0.0)
        if z is None:
            z = difference / error, -difference / error, (design.tolerance - difference) / error
        worse = valid & (z[0] > look.boundary) & (difference > design.min_effect)
        alone = np.maximum(LEAST_ERRORS, look.apart + APART_ERRORS)
        worse &= (look.least >= difference) | (look.least > alone * error)
        better = valid & (z[1] > look.boundary) & (-difference > design.min_effect)
        passes = valid & (z[2] > look.pass_boundary)
    state = np.full(len(valid), INCONCLUSIVE if last else UNDECIDED)
    state[passes] = PASS
    state[passes & better] = IMPROVED
    state[worse] = REGRESSED
    return state


def blank(comparisons: int, boards: int) -> Decisions:
    """Return decisions that say nothing yet: UNDECIDED at look 0, NaN."""
    numbers = {
        field.name: np.full(
            (comparisons, boards) if field.name in ("effects", "errors") else comparisons, np.nan
        )
        for field in fields(Decisions)
    }
    marks = {name: np.zeros((comparisons, boards), dtype=bool) for name in ("contradicted", "odd")}
    counts = {name: np.zeros(comparisons, dtype=np.int64) for name in ("state", "look")}
    return Decisions(**{**numbers, **marks, **counts, "history_weight": np.zeros(comparisons)})


def write(
    found: Decisions,
    rows: np.ndarray,
    look: Look,
    state: np.ndarray,
    number: int,
    z: np.ndarray | None = None,
) -> None:
    """Write what look ``number`` (from 0) says of ``rows``, over what an earlier one said."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        own_z = look.difference / look.error if z is None else z
        low, high = (look.difference + sign * look.boundary * look.error for sign in (-1.0, 1.0))
    values = {"state": state, "look": np.full(len(rows), number + 1), "z": own_z, "low": low, "high": high}
    for field in fields(Decisions):
        own = values[field.name] if field.name in values else getattr(look, field.name)
        getattr(found, field.name)[rows] = own
