# SPDX-License-Identifier: Apache-2.0
"""Otava's splitting of a series, by the test of hil.history.nightly.divisive. Only here is Otava imported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from otava.analysis import TTestStats
from otava.change_point_divisive.base import CandidateChangePoint, ChangePoint, SignificanceTester
from otava.change_point_divisive.calculator import PairDistanceCalculator
from otava.change_point_divisive.detector import ChangePointDetector

from hil.base.numeric import np
from hil.history.nightly.divisive import FIRST_PASS, FOR_A_WHILE, NIGHTS_MIN, p_value


def split(values: np.ndarray) -> list[int]:
    """Return the indices at which Otava finds that another level begins."""
    detector = ChangePointDetector(significance_tester=StudentsTest(FIRST_PASS), calculator=Distances)
    return [int(found.index) for found in detector.get_change_points(values)]


@dataclass
class Candidate(CandidateChangePoint):  # type: ignore[misc]
    """Where a level begins, and the index at which it ends by the distances."""

    end: int


class StudentsTest(SignificanceTester):  # type: ignore[misc]
    """Student's t-test of the parts that a candidate would make, and of the level that it was found by."""

    def change_point(
        self, candidate: Candidate, series: np.ndarray, intervals: Sequence[slice]
    ) -> ChangePoint:
        stop = len(series)
        part = next(part for part in intervals if (part.start or 0) < candidate.index < _end(part.stop, stop))
        before, after = series[part.start : candidate.index], series[candidate.index : part.stop]
        level = p_value(before, series[candidate.index : candidate.end])
        stats = TTestStats(
            pvalue=min(p_value(before, after), level * FIRST_PASS / FOR_A_WHILE),
            mean_1=float(before.mean()),
            mean_2=float(after.mean()),
            std_1=float(before.std(ddof=1)),
            std_2=float(after.std(ddof=1)),
        )
        return ChangePoint.from_candidate(candidate, stats)


class Distances(PairDistanceCalculator):  # type: ignore[misc]
    """Candidates of which each side has NIGHTS_MIN nights, in what it is set against too."""

    def __init__(self, series: np.ndarray) -> None:
        super().__init__(series)
        self._known: dict[tuple[int, int], Candidate] = {}  # a split leaves the other parts alone

    def get_next_candidate(self, intervals: Sequence[slice]) -> Candidate | None:
        candidates = [
            self.get_candidate_change_point(part)
            for part in intervals
            if len(self.series[part]) >= 2 * NIGHTS_MIN
        ]
        return max(candidates, key=lambda candidate: candidate.qhat, default=None)

    def get_candidate_change_point(self, interval: slice) -> Candidate:
        part = interval.start or 0, _end(interval.stop, len(self.series))
        if part not in self._known:
            self._known[part] = self._candidate(*part)
        return self._known[part]

    def _candidate(self, start: int, end: int) -> Candidate:
        q = self._get_Q_vals(start, end)  # rows: where the second part begins, columns: where it ends
        first = np.arange(1, end - start)[:, None]
        last = np.arange(2, end - start + 1)[None, :]
        fits = (first >= NIGHTS_MIN) & (end - start - first >= NIGHTS_MIN) & (last - first >= NIGHTS_MIN)
        q = np.where(fits, q, -np.inf)
        row, column = (int(place) for place in np.unravel_index(int(np.argmax(q)), q.shape))
        return Candidate(index=row + 1 + start, qhat=float(q.max()), end=column + 2 + start)


def _end(stop: int | None, length: int) -> int:
    return length if stop is None else stop
