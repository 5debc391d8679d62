"""Steps that noise puts some nights beside the others: whether a series' own figures allow the event's night.

Series of one board share its boots, so they stray together; that is why a board counts once, however many of
its series stray.
"""

from __future__ import annotations

import datetime
import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from statistics import fmean

import numpy as np
import scipy.special

from hil.history.nightly.divisive import (
    chain,
    loss_at,
)
from hil.history.nightly.event_conditions import split
from hil.history.nightly.nights import Night
from hil.history.nightly.survey import Finding, Survey

STRAY_NIGHTS = 10


STRAY_LOSS = 8.0  # logarithm of a likelihood ratio; chance reaches it in one step of some thousand (e^-8)


_Line = tuple[Sequence[Night], Sequence[float]]


class Straying:
    """Looks up what a step would cost at another night."""

    def __init__(self, survey: Survey) -> None:
        self._judged = survey.judged
        self._steps: dict[str, list[Finding]] = {}
        for finding in survey.findings:
            self._steps.setdefault(finding.point.series_id, []).append(finding)

    def allows(self, findings: Iterable[Finding], night: datetime.date) -> bool:
        """Say whether boards that are independent of each other can all have their steps at ``night``.

        What chance makes each of them lose is about exponential, so their sum has a gamma distribution.
        """
        losses = self.board_losses(findings, night)
        return sum(losses) <= float(scipy.special.gammainccinv(len(losses), math.exp(-STRAY_LOSS)))

    def allows_together(self, findings: Iterable[Finding], night: datetime.date) -> bool:
        """Say the same of boards that share what makes them stray: each by itself must allow it."""
        return max(self.board_losses(findings, night)) <= STRAY_LOSS

    def board_losses(self, findings: Iterable[Finding], night: datetime.date) -> list[float]:
        """Return for each board how much less likely its steps are at ``night`` than where they were found.

        In units of the logarithm, the mean over its series; infinite where the night lies too far away.
        """
        boards = split(findings, lambda finding: (finding.name.rack, finding.name.board))
        return [fmean(self._loss(finding, night) for finding in part) for part in boards]

    def _loss(self, finding: Finding, night: datetime.date) -> float:
        point = finding.point
        if abs((point.night - night).days) > STRAY_NIGHTS:
            return math.inf
        for nights, logs in self._lines(finding):
            dates = [one.date for one in nights]
            if not dates[0] < point.night <= dates[-1]:
                continue
            own, other = bisect_left(dates, point.night), bisect_left(dates, night)
            start, end = self._edges(finding, dates)
            if start < other < end and start < own < end:
                return loss_at(np.asarray(logs[start:end]), own - start, other - start)
        return math.inf

    def _lines(self, finding: Finding) -> list[_Line]:
        nights = self._judged.get(finding.point.series_id, ())
        if finding.point.of_ratio:
            return [(part.nights, part.ratios) for part in chain(nights)]
        return [(nights, [night.level for night in nights])] if nights else []

    def _edges(self, finding: Finding, dates: Sequence[datetime.date]) -> tuple[int, int]:
        """Return where the levels before and after a step begin and end, by the series' other steps."""
        others = [
            bisect_left(dates, other.point.night)
            for other in self._steps.get(finding.point.series_id, ())
            if other is not finding and (other.point.of_ratio or not finding.point.of_ratio)
        ]
        own = bisect_left(dates, finding.point.night)
        before = [other for other in others if other < own]
        after = [other for other in others if other > own]
        return max(before, default=0), min(after, default=len(dates))
