# SPDX-License-Identifier: Apache-2.0
"""A comparison that grows: what is known after each look, and the decision, which freezes when it is made.

Arrays have a leading axis R of independent comparisons, B boards and K boots; a boot that is not there is
NaN. Values are on the metric's scale, "larger is worse" already, so that every test is one-sided.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from hil.gate.compare import boundaries, strata
from hil.gate.compare.boards import Boards, bounded, differences, student_boundary

UNDECIDED, PASS, REGRESSED, IMPROVED, INCONCLUSIVE = range(5)

FEWEST_BOOTS = 6  # of each role, on all boards together
LEAST_ERRORS = 2.0  # by which a regression must stand out without any one of several boards
APART_ERRORS = 0.5  # and by so many more than those by which that board lies above the others
_POWER_80 = 0.8416  # the normal quantile of 80 %
_LEAST = 1e-13  # of a value: no variance is smaller than its square, so that equal values divide by something


@dataclass(frozen=True)
class Design:
    """How comparisons are decided. ``alpha`` and ``beta`` are of one decision; ``tolerance`` and
    ``min_effect`` are on the metric's scale; ``variance_floor`` is the clock's quantum squared over 12.
    """

    looks: tuple[tuple[int, int], ...]
    alpha: float
    beta: float
    tolerance: float
    min_effect: float
    variance_floor: float = 0.0


@dataclass(frozen=True)
class Decisions:
    """One element a comparison, shape (R,), unless said. ``state`` is UNDECIDED … INCONCLUSIVE.

    Undecided and inconclusive ones show the last look that there is data for. ``low`` and ``high`` are the
    repeated confidence interval, ``pass_bound`` the largest difference that the test of passing leaves.
    ``odd`` (R, B) marks boards that contradict the others and were left out; ``effects`` and ``errors``
    (R, B) are each board's own difference and its standard error.
    """

    state: np.ndarray
    look: np.ndarray
    difference: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    pass_bound: np.ndarray
    z: np.ndarray
    boundary: np.ndarray
    boot_deviation: np.ndarray
    smallest_effect: np.ndarray
    odd: np.ndarray
    effects: np.ndarray
    errors: np.ndarray


@dataclass(frozen=True)
class Look:
    """Shape (R,), or (R, B) for boards, as in Decisions; ``valid`` where something may be decided.

    ``least`` is the difference without the board that adds the most to it, where there are several, and
    ``apart`` by how many errors that board lies above the others.
    """

    valid: np.ndarray
    difference: np.ndarray
    least: np.ndarray
    apart: np.ndarray
    error: np.ndarray
    boundary: np.ndarray
    pass_boundary: np.ndarray
    pass_bound: np.ndarray
    boot_deviation: np.ndarray
    smallest_effect: np.ndarray
    odd: np.ndarray
    effects: np.ndarray
    errors: np.ndarray


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


def decide(candidate: np.ndarray, other: np.ndarray, design: Design) -> Decisions:
    """Go through the looks for which there is data, and freeze each comparison at its first decision.

    ``candidate`` is (R, B, Kc), ``other`` (R, B, Ko), boots by their place in the plan: one that was lost is
    NaN, one whose value was never seen infinite. A look is reached when at least one board has the last boot
    of either role that it asks for; the other boards count with what they have before that. The boot loop
    waits for all boards after each look, so that one with less has failed, and a replay finds the same.

    The test is Student's, of FEWEST_BOOTS of each role or more. Regressed: the difference exceeds its error
    by the boundary, and ``min_effect``, and without any one of several boards still LEAST_ERRORS errors, more
    where that board lies apart: no board blocks alone. Pass: it is below ``tolerance`` by as many errors as
    the boundary of passing says, and no board that was left out lies beyond it. Improved: it passes, and is
    better by the mirrored test. Regressed goes first. The last look without a decision is inconclusive, and
    boards that contradict each other decide nothing. ``low`` and ``high`` are of level 1 - 2 alpha;
    ``smallest_effect`` is as smallest_effect() says.
    """
    found = blank(*candidate.shape[:2])
    looks = _Looks(candidate, other, design)
    undecided = np.ones(len(candidate), dtype=bool)
    for number in range(len(design.looks)):
        here = np.flatnonzero(undecided & looks.reached[:, number])
        if not len(here):
            continue
        look = looks.at(number, here)
        state = judge(look, design, last=number == len(design.looks) - 1)
        write(found, here, look, state, number)
        undecided[here] = state == UNDECIDED
    return found


def trace(candidate: np.ndarray, other: np.ndarray, design: Design) -> Trace:
    """Return what each look says, without deciding: for simulations."""
    shape = (len(candidate), len(design.looks))
    found = Trace(*(np.full(shape, np.nan) for _ in fields(Trace)))
    looks = _Looks(candidate, other, design)
    for number in range(len(design.looks)):
        here = np.flatnonzero(looks.reached[:, number])
        look = looks.at(number, here)
        for field in fields(Trace):
            getattr(found, field.name)[here, number] = getattr(look, field.name)
    return found


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
        passes = valid & (z[2] > look.pass_boundary) & ~_hides_a_board(look, design)
    state = np.full(len(valid), INCONCLUSIVE if last else UNDECIDED)
    state[passes] = PASS
    state[passes & better] = IMPROVED
    state[worse] = REGRESSED
    return state


def _hides_a_board(look: Look, design: Design) -> np.ndarray:
    """Say where a board that was left out is worse than the tolerance: the others are no excuse."""
    return np.asarray((look.odd & (look.effects > design.tolerance)).any(axis=1))


def blank(comparisons: int, boards: int) -> Decisions:
    """Return decisions that say nothing yet: UNDECIDED at look 0, NaN."""
    numbers = {
        field.name: np.full(
            (comparisons, boards) if field.name in ("effects", "errors") else comparisons, np.nan
        )
        for field in fields(Decisions)
    }
    counts = {name: np.zeros(comparisons, dtype=np.int64) for name in ("state", "look")}
    return Decisions(**{**numbers, **counts, "odd": np.zeros((comparisons, boards), dtype=bool)})


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


def smallest_effect(boot_variance: np.ndarray, boards: np.ndarray, design: Design) -> np.ndarray:
    """Return what the last look finds with 80 % power if boots vary so, on so many boards; all (R,).

    By the normal approximation: boundary and 0.84 errors, and not below ``min_effect`` and 0.84 errors.
    """
    of_candidate, of_other = design.looks[-1]
    error = np.sqrt(boot_variance * (1.0 / of_candidate + 1.0 / of_other) / np.maximum(boards, 1))
    planned = tuple(_information(*look) / _information(of_candidate, of_other) for look in design.looks)
    last = boundaries.of_rows(np.array([planned]), design.alpha, "obrien-fleming")[:, -1]
    bound = student_boundary(last, boards * (of_candidate + of_other - 2.0))
    return np.asarray(np.maximum(bound * error, design.min_effect) + _POWER_80 * error)


def reach(values: np.ndarray) -> np.ndarray:
    """Return the place (from 1) of the last boot that any board has; 0 without one."""
    there = (~np.isnan(values)).any(axis=1)
    return np.asarray((there * np.arange(1, there.shape[1] + 1)).max(axis=1, initial=0))


class _Looks:
    """The looks of comparisons, each by itself."""

    def __init__(self, candidate: np.ndarray, other: np.ndarray, design: Design) -> None:
        self._candidate = np.asarray(candidate, dtype=float)
        self._other = np.asarray(other, dtype=float)
        self._design = design
        asked = np.array(design.looks)
        self.reached = (reach(self._candidate)[:, np.newaxis] >= asked[:, 0]) & (
            reach(self._other)[:, np.newaxis] >= asked[:, 1]
        )
        self._floor = max(design.variance_floor, 0.0) + self._least_variance()
        fractions = self._fractions()
        self._efficacy = boundaries.of_rows(fractions, design.alpha, "obrien-fleming")
        self._futility = boundaries.of_rows(fractions, design.beta, "pocock")

    def at(self, number: int, rows: np.ndarray) -> Look:
        """Return look ``number`` (from 0) of these comparisons."""
        of_candidate, of_other = self._design.looks[number]
        # copies, laid out alike however many boots follow: sums over them have the same bytes then
        candidate = np.ascontiguousarray(self._candidate[rows, :, :of_candidate])
        other = np.ascontiguousarray(self._other[rows, :, :of_other])
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            candidate, other = bounded(candidate, other, self._design.tolerance)
            boards = differences(candidate, other, self._floor[rows])
            usable = np.isfinite(boards.effect)[:, :, np.newaxis]
            boots = [(usable & ~np.isnan(side)).sum(axis=(1, 2)) for side in (candidate, other)]
            enough = np.minimum(boots[0], boots[1]) >= FEWEST_BOOTS
            return self._combined(
                boards, enough, (self._efficacy[rows, number], self._futility[rows, number])
            )

    def _combined(self, boards: Boards, enough: np.ndarray, bounds: tuple[np.ndarray, np.ndarray]) -> Look:
        whole = strata.combine(boards.effect, boards.variance, boards.freedom, 0.5 * self._design.min_effect)
        error = np.sqrt(whole.variance)
        boundary, below = (student_boundary(bound, boards.freedom) for bound in bounds)
        return Look(
            valid=enough & ~whole.contradictory,
            difference=whole.difference,
            least=whole.least,
            apart=whole.apart,
            error=error,
            boundary=boundary,
            pass_boundary=below,
            pass_bound=whole.difference + below * error,
            boot_deviation=np.sqrt(boards.boot_variance),
            smallest_effect=smallest_effect(boards.boot_variance, whole.used.sum(axis=1), self._design),
            odd=whole.odd,
            effects=boards.effect,
            errors=np.sqrt(boards.variance),
        )

    def _fractions(self) -> np.ndarray:
        """Return the share of the planned information that there is at each look, (R, looks)."""
        present = self._present()
        planned = np.maximum(
            present.sum(axis=1) * _information(*self._design.looks[-1]), np.finfo(float).tiny
        )
        columns = []
        for look in self._design.looks:
            counts = [
                (~np.isnan(values[:, :, :boots])).sum(axis=2)
                for values, boots in zip((self._candidate, self._other), look, strict=True)
            ]
            columns.append(np.where(present, _information(*counts), 0.0).sum(axis=1) / planned)
        return np.stack(columns, axis=1)

    def _present(self) -> np.ndarray:
        """Say which boards (R, B) take part: those with a boot of each role in the first look; else all.

        What comes after the first look must not change what was decided at it.
        """
        here = np.ones(self._candidate.shape[:2], dtype=bool)
        for values, boots in zip((self._candidate, self._other), self._design.looks[0], strict=True):
            here &= ~np.isnan(values[:, :, :boots]).all(axis=2)
        return np.asarray(here | ~here.any(axis=1, keepdims=True))

    def _least_variance(self) -> np.ndarray:
        """Return a variance (R,) so small that it only keeps equal values from dividing by nothing."""
        first = [values[:, :, 0] for values in (self._candidate, self._other) if values.shape[2]]
        sizes = [
            np.where(np.isfinite(values), np.abs(values), 0.0).max(axis=1, initial=0.0) for values in first
        ]
        largest = np.max([*sizes, np.ones(len(self._candidate))], axis=0)
        return np.asarray((_LEAST * np.minimum(largest, 1e150)) ** 2)


def _information(of_candidate: np.ndarray | int, of_other: np.ndarray | int) -> np.ndarray:
    """Return the information in so many boots of a board, in boots of each; 0 where one role has none."""
    mine, others = np.asarray(of_candidate, dtype=float), np.asarray(of_other, dtype=float)
    return np.asarray(mine * others / np.maximum(mine + others, 1.0))
