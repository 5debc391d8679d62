"""Whether the neighbours of a board moved with it: the same case and metric on other boards of its rack."""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Mapping, Sequence

from hil.history.nightly.nights import Night
from hil.history.nightly.survey import TOGETHER_NIGHTS, Finding, Survey, split_series_id

WINDOW = datetime.timedelta(days=14)  # before a step and after it
NIGHTS_MIN = 2  # on either side; a board that left, or came, says nothing
FOLLOWED = 0.5  # a neighbour moved with a board where it moved by this share of its step


class Neighbours:
    """Looks up what was judged beside a series."""

    def __init__(self, survey: Survey) -> None:
        self._judged: Mapping[str, Sequence[Night]] = survey.judged
        self._beside: dict[tuple[str, str, str], list[str]] = {}
        for series_id in survey.judged:
            name = split_series_id(series_id)
            self._beside.setdefault((name.rack, name.case_id, name.metric), []).append(series_id)
        self._steps: dict[str, list[datetime.date]] = {}
        for finding in survey.findings:
            if finding.point.cause != "firmware":
                self._steps.setdefault(finding.point.series_id, []).append(finding.point.night)

    def stayed(self, finding: Finding) -> bool:
        """Whether other boards measured the same in the nights around a step, and none of them moved."""
        name, point = finding.name, finding.point
        size = math.log1p(point.change)
        shares = []
        for series_id in self._beside.get((name.rack, name.case_id, name.metric), ()):
            moved = None if series_id == point.series_id else _moved(self._judged[series_id], point.night)
            if moved is None:
                continue
            if self._has_step(series_id, point.night):
                return False
            shares.append(moved / size)
        return bool(shares) and statistics.median(shares) < FOLLOWED

    def _has_step(self, series_id: str, night: datetime.date) -> bool:
        return any(abs((step - night).days) <= TOGETHER_NIGHTS for step in self._steps.get(series_id, ()))


def _moved(nights: Sequence[Night], step: datetime.date) -> float | None:
    """Return by how much the level changed at a night (logarithm), None where a side has too few nights."""
    before = [night.level for night in nights if step - WINDOW <= night.date < step]
    after = [night.level for night in nights if step <= night.date < step + WINDOW]
    if min(len(before), len(after)) < NIGHTS_MIN:
        return None
    return statistics.median(after) - statistics.median(before)
