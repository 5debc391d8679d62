# SPDX-License-Identifier: Apache-2.0
"""By how much a new epoch would move the mean of each series, against the epoch in force.

The gated set of a rack: what a pull request is compared by, and what the history knows of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hil.base.numeric import np
from hil.base.units import format_difference, format_value
from hil.gate.compare.boots import Scale, scale_of
from hil.history.baseline.noise import SeriesNoise, noise_of
from hil.metrics.metric import Metric
from hil.metrics.sessions import History, SeriesHistory, SessionBoard
from hil.model import Case, PastKind, Scalar, SeriesId, format_series_id
from hil.thresholds.baselines import Epoch
from hil.thresholds.limits import CompareRule, series_facts
from hil.thresholds.types import Thresholds

SUITE = "pr"


@dataclass(frozen=True)
class GatedSeries:
    """One metric of one case on one board; ``entry`` is None where the history does not hold it."""

    board: str
    series_id: str
    entry: SeriesHistory | None

    def boots(self, sessions: Collection[int]) -> np.ndarray:
        """Say of each boot whether it is of one of these sessions."""
        assert self.entry is not None
        return np.isin(self.entry.session, list(sessions))


@dataclass(frozen=True)
class GatedUnit:
    """One metric of one case on all boards of a target: what one decision is about."""

    target: str
    kind: PastKind
    case: Case
    metric: Metric
    rule: CompareRule
    thresholds: Thresholds
    series: tuple[GatedSeries, ...]

    @property
    def name(self) -> str:
        return f"{self.metric.name} of {self.case.bench} {self.thresholds.case_label(self.case.parameters)}"

    @property
    def scale(self) -> Scale:
        return scale_of(self.metric)


def gated_units(history: History, place: str, thresholds: Mapping[str, Thresholds]) -> list[GatedUnit]:
    """Return what blocks a pull request at a place, for the boards that its last session with each had.

    A place is whose figures and where (Session.place): the rack's name where no product is named. A board
    that no case of the suite was ever measured on has no part in a unit of it. Raises ConfigError where two
    rules match and neither is more specific.
    """
    boards = boards_of(history, place)
    targets = dict.fromkeys(board.target for board, _ in boards.values())
    return [
        unit
        for own in thresholds.values()
        for case in own.suites.get(SUITE, ())
        for metric in own.metrics_of(case.parameters)
        for target in targets
        if (unit := _unit(history, place, own, case, metric, target, boards)) is not None
    ]


def boards_of(history: History, place: str) -> dict[str, tuple[SessionBoard, str]]:
    """Return each board of a place, as its last session had it, and the profile of its air ("" without)."""
    found: dict[str, tuple[SessionBoard, str]] = {}
    for session in history.sessions:
        if session.place == place:
            for board, what in session.boards.items():
                found[board] = (what, str(session.conditions.get(f"{board}.air", "")))
    return dict(sorted(found.items()))


def sessions_of(history: History, run_ids: Collection[str]) -> frozenset[int]:
    """Return the numbers of sessions in the history."""
    return frozenset(n for n, session in enumerate(history.sessions) if session.run_id in run_ids)


def sessions_with(unit: GatedUnit) -> frozenset[int]:
    """Return the numbers of the sessions that have a boot of the unit."""
    return frozenset(n for one in unit.series if one.entry is not None for n in one.entry.session.tolist())


def noise_of_unit(
    unit: GatedUnit, epoch: Collection[int], among: Collection[int] | None = None
) -> list[SeriesNoise]:
    """Return each board's noise on the metric's scale; ``epoch`` are the sessions that give the mean.

    Of ``among`` alone where it is given.
    """
    return [_noise(unit.scale, series.entry, epoch, among) for series in unit.series]


def positions(scale: Scale, values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return where values lie on a metric's scale."""
    return np.array([scale.position(float(value), 0.0) for value in values], dtype=float)


def _unit(
    history: History,
    place: str,
    own: Thresholds,
    case: Case,
    metric: Metric,
    target: str,
    boards: Mapping[str, tuple[SessionBoard, str]],
) -> GatedUnit | None:
    mine = {board: what for board, what in boards.items() if what[0].target == target}
    names = {board: format_series_id(place, board, case.case_id, metric.name) for board in mine}
    rules = {
        board: own.compare_rule(_facts(case, SeriesId.parse(names[board]), *what))
        for board, what in mine.items()
    }
    found = [rule for rule in rules.values() if rule is not None]
    series = tuple(
        GatedSeries(board, names[board], history.series(names[board]))
        for board, rule in rules.items()
        if rule is not None and _was_measured(history, place, board, case)
    )
    if not found or not series:
        return None
    rule = min(found, key=lambda one: (one.tolerance, one.min_effect, one.source))
    kind = next(iter(mine.values()))[0].kind
    return GatedUnit(target, kind, case, metric, rule, own, series)


def _facts(case: Case, name: SeriesId, what: SessionBoard, air: str) -> dict[str, Scalar]:
    return series_facts(
        name.metric,
        case.parameters,
        kind=what.kind,
        rack=name.rack,
        target=what.target,
        board=name.board,
        air=air,
        product=name.product,
    )


def _was_measured(history: History, place: str, board: str, case: Case) -> bool:
    start = f"{place}/{board}/{case.case_id}/"
    return any(series_id.startswith(start) for series_id, _ in history.entries)


def _noise(
    scale: Scale, entry: SeriesHistory | None, epoch: Collection[int], among: Collection[int] | None
) -> SeriesNoise:
    if entry is None:
        return SeriesNoise()
    kept = np.ones(len(entry), dtype=bool) if among is None else np.isin(entry.session, list(among))
    if not kept.any():
        return SeriesNoise()
    sessions = entry.session[kept]
    values = positions(scale, entry.value[kept])
    return noise_of(sessions, values, np.isin(sessions, list(epoch)))


def unmeasured(history: History, place: str, thresholds: Mapping[str, Thresholds]) -> Iterator[str]:
    """Yield, in words, each case of the suite that a board of the place has no value of."""
    for board in boards_of(history, place):
        for own in thresholds.values():
            for case in own.suites.get(SUITE, ()):
                if not _was_measured(history, place, board, case):
                    yield f"{board}: {case.bench} {own.case_label(case.parameters)}"


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
