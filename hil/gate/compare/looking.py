# SPDX-License-Identifier: Apache-2.0
"""One look at comparisons: the difference that there is, its error, and the boundaries it is held against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hil.gate.compare import anchor, boots, boundaries, strata
from hil.gate.compare.design import Design, Noise

FEWEST_SESSIONS = 5  # of variance history, on every board
FEWEST_BOOTS = 6  # of each role, on all boards together, where there is no such history
_POWER_80 = 0.8416  # the normal quantile of 80 %
_UNKNOWN_FREEDOM = 3.0  # degrees of freedom a session that the history's variances are taken to have
_LEAST = 1e-13  # of a value: no variance is smaller than its square, so that equal values divide by something


@dataclass(frozen=True)
class Look:
    """Shape (R,), or (R, B) for boards, as in Decisions; ``valid`` where something may be decided.

    ``least`` is the difference without the board that adds the most to it, where there are several, and
    ``apart`` by how many errors that board lies above the others. ``pass_bound`` is the largest difference
    that the test of passing does not exclude.
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
    session_deviation: np.ndarray
    smallest_effect: np.ndarray
    history_weight: np.ndarray
    contradicted: np.ndarray
    odd: np.ndarray
    effects: np.ndarray
    errors: np.ndarray


class Looks:
    """The looks of comparisons of one kind: the history knows their noise and ``anchors`` them, or not."""

    def __init__(
        self, candidate: np.ndarray, other: np.ndarray, noise: Noise, design: Design, *, anchors: bool
    ) -> None:
        self._candidate, self._other = candidate, other
        self._noise, self._design, self._anchors = noise, design, anchors
        self._present = _present(candidate, other, design)
        asked = np.array(design.looks)
        self.reached = (reach(candidate)[:, np.newaxis] >= asked[:, 0]) & (
            reach(other)[:, np.newaxis] >= asked[:, 1]
        )
        self._floor = max(design.variance_floor, 0.0) + _least_variance(candidate, other, self._present)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            self._known = self._board_noise()
            fractions, planned = self._fractions(), self._planned_fractions()
        # what is said of the end must not change with what comes until then
        self._final = boundaries.of_rows(planned, design.alpha, "obrien-fleming")[:, -1]
        self._efficacy = boundaries.of_rows(fractions, design.alpha, "obrien-fleming")
        self._futility = boundaries.of_rows(fractions, design.beta, "pocock")

    @staticmethod
    def known(candidate: np.ndarray, other: np.ndarray, noise: Noise, design: Design) -> np.ndarray:
        """Say of which comparisons (R,) the history knows the noise of each board that takes part."""
        each = (np.nan_to_num(noise.sessions) >= FEWEST_SESSIONS) & np.isfinite(noise.boot_variance)
        each &= np.isfinite(noise.session_variance) & np.isfinite(noise.deviation)
        present = _present(candidate, other, design)
        return np.asarray((each | ~present).all(axis=1) & (each & present).any(axis=1))

    def at(self, number: int, rows: np.ndarray) -> Look:
        """Return look ``number`` (from 0) of these comparisons."""
        of_candidate, of_other = self._design.looks[number]
        # copies, laid out alike however many boots follow: sums over them have the same bytes then
        candidate = np.ascontiguousarray(self._candidate[rows, :, :of_candidate])
        other = np.ascontiguousarray(self._other[rows, :, :of_other])
        deviation = (
            np.sqrt(self._known.clipped[rows]) if self._anchors else np.full(candidate.shape[:2], np.nan)
        )
        if self._anchors:
            deviation = np.maximum(np.nan_to_num(self._noise.deviation[rows]), np.sqrt(self._floor[rows]))
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            candidate, other = boots.bounded(candidate, other, deviation, self._design.tolerance)
            if not self._anchors:
                own = boots.own_deviation(candidate, other)[:, np.newaxis]
                deviation = np.maximum(own, np.sqrt(self._floor[rows])) + np.zeros(deviation.shape)
            boards, enough = self._boards(candidate, other, deviation, rows)
            return self._combined(boards, enough, number, rows)

    def _boards(
        self, candidate: np.ndarray, other: np.ndarray, deviation: np.ndarray, rows: np.ndarray
    ) -> tuple[anchor.Boards, np.ndarray]:
        """Return each board's difference, and whether there are boots enough to decide."""
        of_candidate, of_other = boots.summarise(candidate, deviation), boots.summarise(other, deviation)
        if self._anchors:
            noise = anchor.BoardNoise(*(getattr(self._known, name)[rows] for name in _NOISE_FIELDS))
            boards = anchor.anchored(of_candidate, of_other, noise)
            return boards, np.isfinite(boards.effect).any(axis=1)
        boards = anchor.by_itself(of_candidate, of_other, self._floor[rows, 0])
        usable = np.isfinite(boards.effect)
        fewest = np.minimum(
            np.where(usable, of_candidate.count, 0).sum(axis=1),
            np.where(usable, of_other.count, 0).sum(axis=1),
        )
        return boards, fewest >= FEWEST_BOOTS

    def _combined(self, boards: anchor.Boards, enough: np.ndarray, number: int, rows: np.ndarray) -> Look:
        design = self._design
        whole = strata.combine(
            boards.effect, boards.variance, boards.freedom, 0.5 * design.min_effect, pooled=not self._anchors
        )
        error = np.sqrt(whole.variance)
        weight = np.where(whole.used, 1.0 / boards.variance, 0.0)
        share = np.where(whole.used, boards.weight, 0.0) * weight
        boundary, below = (
            design.kappa * anchor.student_boundary(bounds[rows, number], whole.freedom)
            for bounds in (self._efficacy, self._futility)
        )
        return Look(
            valid=enough & ~whole.contradictory,
            difference=whole.difference,
            least=whole.least,
            apart=whole.apart,
            error=error,
            boundary=boundary,
            pass_boundary=below,
            pass_bound=whole.difference + below * error,
            boot_deviation=np.sqrt(_mean(boards.boot_variance, whole.used)),
            session_deviation=np.sqrt(_mean(self._noise.session_variance[rows], whole.used)),
            smallest_effect=self._smallest_effect(boards, whole, rows),
            history_weight=share.sum(axis=1) / np.maximum(weight.sum(axis=1), np.finfo(float).tiny),
            contradicted=boards.contradicted,
            odd=whole.odd,
            effects=boards.effect,
            errors=np.sqrt(boards.variance),
        )

    def _smallest_effect(self, boards: anchor.Boards, whole: strata.Combined, rows: np.ndarray) -> np.ndarray:
        """Return what the last look finds with 80 % power if the noise stays as it is; see decide()."""
        of_candidate, of_other = self._design.looks[-1]
        anchored = self._expected_precision(of_other)[rows]
        variance = boards.boot_variance
        final = variance / of_candidate + 1.0 / (of_other / variance + anchored)
        precision = np.where(whole.used, 1.0 / final, 0.0).sum(axis=1)
        error = np.sqrt(1.0 / np.where(precision > 0.0, precision, np.nan))
        freedom = whole.used.sum(axis=1) * (of_candidate + of_other - 2.0)
        bound = anchor.student_boundary(self._final[rows], np.maximum(whole.freedom, freedom))
        crossed = np.maximum(self._design.kappa * bound * error, self._design.min_effect)
        return np.asarray(crossed + _POWER_80 * error)

    def _board_noise(self) -> anchor.BoardNoise:
        """Return the history's noise with floors; of noise nobody knows, a boot has the variance 1."""
        noise, shape = self._noise, self._present.shape
        if not self._anchors:
            one = np.ones(shape)
            return anchor.BoardNoise(one, one, one, np.zeros(shape), np.full(shape, np.inf))
        clipped = np.maximum(np.nan_to_num(noise.boot_variance, nan=1.0), self._floor)
        plain = clipped if noise.plain_variance is None else np.asarray(noise.plain_variance)
        plain = np.where(np.isfinite(plain), np.maximum(plain, clipped), clipped)
        sessions = np.nan_to_num(noise.sessions)
        freedom = _UNKNOWN_FREEDOM * sessions if noise.freedom is None else np.nan_to_num(noise.freedom)
        level = anchor.level_variance(
            noise.session_variance, clipped, sessions, np.nan_to_num(noise.epoch_sessions),
            np.nan_to_num(noise.epoch_boots),
        )  # fmt: skip
        level = np.where(np.isfinite(noise.mean), level, np.inf)
        return anchor.BoardNoise(clipped, plain, np.maximum(freedom, 1.0), noise.mean, level)

    def _expected_precision(self, boots_of_other: np.ndarray | float) -> np.ndarray:
        many = np.zeros(self._present.shape) + boots_of_other
        return anchor.expected_precision(self._known, many, self._present.sum(axis=1))

    def _fractions(self) -> np.ndarray:
        """Return the share of the planned information that there is at each look, (R, looks)."""
        there = [
            tuple(
                (~np.isnan(values[:, :, :boots])).sum(axis=2)
                for values, boots in zip(sides, look, strict=True)
            )
            for sides, look in ((((self._candidate, self._other)), look) for look in self._design.looks)
        ]
        return self._shares(there)

    def _planned_fractions(self) -> np.ndarray:
        return self._shares(
            [tuple(np.full(self._present.shape, n) for n in look) for look in self._design.looks]
        )

    def _shares(self, counts: list[tuple[np.ndarray, ...]]) -> np.ndarray:
        planned = self._information(*(np.full(self._present.shape, n) for n in self._design.looks[-1]))
        columns = [self._information(*count) / np.maximum(planned, np.finfo(float).tiny) for count in counts]
        return np.stack(columns, axis=1)

    def _information(self, of_candidate: np.ndarray, of_other: np.ndarray) -> np.ndarray:
        """Return the information (R,) in so many boots on each board."""
        variance = self._known.clipped
        usable = self._present & (of_candidate > 0) & (of_other > 0)
        anchored = of_other / variance + self._expected_precision(of_other)
        of_board = variance / np.maximum(of_candidate, 1) + 1.0 / np.where(usable, anchored, 1.0)
        return np.asarray(np.where(usable, 1.0 / of_board, 0.0).sum(axis=1))


_NOISE_FIELDS = ("clipped", "plain", "freedom", "mean", "level")


def _present(candidate: np.ndarray, other: np.ndarray, design: Design) -> np.ndarray:
    """Say which boards (R, B) take part: those with a boot of each role in the first look; else all.

    What comes after the first look must not change what was decided at it.
    """
    of_candidate, of_other = design.looks[0]
    here = ~np.isnan(candidate[:, :, :of_candidate]).all(axis=2) & ~np.isnan(other[:, :, :of_other]).all(
        axis=2
    )
    return np.asarray(here | ~here.any(axis=1, keepdims=True))


def reach(values: np.ndarray) -> np.ndarray:
    """Return the place (from 1) of the last boot that any board has; 0 without one."""
    there = (~np.isnan(values)).any(axis=1)
    return np.asarray((there * np.arange(1, there.shape[1] + 1)).max(axis=1, initial=0))


def _least_variance(candidate: np.ndarray, other: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Return a variance (R, B) so small that it only keeps equal values from dividing by nothing."""
    first = [
        np.where(np.isfinite(values[:, :, :1]), np.abs(values[:, :, :1]), 0.0)
        for values in (candidate, other)
    ]
    largest = np.concatenate(first, axis=2).max(axis=2, initial=0.0)
    return np.asarray((_LEAST * np.maximum(1.0, np.minimum(largest, 1e150))) ** 2 + np.zeros(present.shape))


def _mean(values: np.ndarray, kept: np.ndarray) -> np.ndarray:
    total = np.where(kept, values, 0.0).sum(axis=1)
    count = kept.sum(axis=1)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))
