"""By how much a new epoch would move the mean of each series, against the epoch in force."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from hil.base.units import format_difference, format_value
from hil.gate.scale import Scale
from hil.history.baseline.gated import GatedSeries, GatedUnit, positions, sessions_of
from hil.metrics.sessions import History
from hil.thresholds.baselines import Epoch


@dataclass(frozen=True)
class Change:
    """One series: its mean of the new sessions, and of the epoch in force where that has it.

    ``change`` is relative on the scale log, else in the unit; positive where the figure grew. ``worse`` says
    which way it went. ``moved`` that it is more than the rule tolerates, either way. ``note`` is why there is
    none.
    """

    unit: GatedUnit
    board: str
    sessions: int
    mean: float | None
    before: float | None
    change: float | None = None
    worse: bool = False
    moved: bool = False
    note: str = ""

    @property
    def text(self) -> str:
        """The change as a person reads it."""
        if self.change is None:
            return self.note or "new"
        relative = self.unit.scale.relative
        size = f"{self.change:+.1%}" if relative else format_difference(self.change, self.unit.metric.unit)
        word = "worse" if self.worse else "better"
        return f"{size}, {word} by more than tolerated" if self.moved else size


def changes(
    history: History, units: Sequence[GatedUnit], sessions: Collection[int], epoch: Epoch | None
) -> list[Change]:
    """Set the means of ``sessions`` beside those of the epoch in force, a row a series."""
    before = sessions_of(history, epoch.sessions) if epoch else frozenset()
    return [_change(unit, series, sessions, before) for unit in units for series in unit.series]


def _change(
    unit: GatedUnit, series: GatedSeries, sessions: Collection[int], before: Collection[int]
) -> Change:
    number = _count(series, sessions)
    new, old = _mean(unit.scale, series, sessions), _mean(unit.scale, series, before)
    mean, last = (None if where is None else unit.scale.value(where) for where in (new, old))
    row = Change(unit, series.board, number, mean, last)
    if new is None or old is None:
        return row
    if _rulers(series, sessions) != _rulers(series, before):
        return Change(unit, series.board, number, mean, last, note="measured by another ruler")
    difference = new - old
    limit = _tolerance(unit, better=difference < 0)
    return Change(
        unit=unit,
        board=series.board,
        sessions=number,
        mean=mean,
        before=last,
        change=unit.scale.change(difference),
        worse=difference > 0,
        moved=abs(difference) > limit,
    )


def _tolerance(unit: GatedUnit, *, better: bool) -> float:
    """Return the tolerance as a distance on the scale, for the worse or for the better."""
    worse = unit.scale.worse(unit.rule.tolerance)
    if not better or not unit.scale.relative:
        return worse
    return Scale(unit.scale.relative, -unit.scale.sign).worse(unit.rule.tolerance)


def _mean(scale: Scale, series: GatedSeries, sessions: Collection[int]) -> float | None:
    """Return the mean of the sessions' medians on the scale; None where no boot counts."""
    if series.entry is None or not sessions:
        return None
    where = positions(scale, series.entry.value)
    medians = [
        float(np.median(own))
        for session in sessions
        if len(own := where[(series.entry.session == session) & np.isfinite(where)])
    ]
    return float(np.mean(medians)) if medians else None


def _count(series: GatedSeries, sessions: Collection[int]) -> int:
    return 0 if series.entry is None else len(set(series.entry.session[series.boots(sessions)].tolist()))


def _rulers(series: GatedSeries, sessions: Collection[int]) -> set[str]:
    return set() if series.entry is None else set(map(str, series.entry.ruler[series.boots(sessions)]))


def rows(found: Sequence[Change]) -> list[list[str]]:
    """Return a table for a person, its heading first."""
    lines = [["series", "board", "sessions", "epoch in force", "new mean", "change"]]
    for item in found:
        unit = item.unit.metric.unit
        before, mean = (
            "–" if value is None else format_value(value, unit) for value in (item.before, item.mean)
        )
        lines.append([item.unit.name, item.board, str(item.sessions), before, mean, item.text])
    return lines


def unnamed(found: Sequence[Change], reason: str) -> list[str]:
    """Return the metrics that moved by more than is tolerated and that the reason does not name."""
    moved = dict.fromkeys(item.unit.metric.name for item in found if item.moved)
    return [name for name in moved if name not in reason]
