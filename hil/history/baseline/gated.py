"""The gated set of a rack: what a pull request is compared by, and what the history knows of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hil.gate.noise import SeriesNoise, noise_of
from hil.gate.scale import Scale, scale_of
from hil.metrics.metric import Metric
from hil.metrics.sessions import History, SeriesHistory, SessionBoard
from hil.model import Case, Kind, Scalar, format_series_id
from hil.thresholds.comparison import CompareRule
from hil.thresholds.limits import series_facts
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
    kind: Kind
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


def gated_units(history: History, rack: str, thresholds: Mapping[str, Thresholds]) -> list[GatedUnit]:
    """Return what blocks a pull request on a rack, for the boards that its last session with each had.

    A board that no case of the suite was ever measured on has no part in a unit of it. Raises ConfigError
    where two rules match and neither is more specific.
    """
    boards = boards_of(history, rack)
    targets = dict.fromkeys(board.target for board, _ in boards.values())
    return [
        unit
        for own in thresholds.values()
        for case in own.suites.get(SUITE, ())
        for metric in own.metrics_of(case.parameters)
        for target in targets
        if (unit := _unit(history, rack, own, case, metric, target, boards)) is not None
    ]


def boards_of(history: History, rack: str) -> dict[str, tuple[SessionBoard, str]]:
    """Return each board of a rack, as its last session had it, and the profile of its air ("" without)."""
    found: dict[str, tuple[SessionBoard, str]] = {}
    for session in history.sessions:
        if session.rack == rack:
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
    rack: str,
    own: Thresholds,
    case: Case,
    metric: Metric,
    target: str,
    boards: Mapping[str, tuple[SessionBoard, str]],
) -> GatedUnit | None:
    places = {board: place for board, place in boards.items() if place[0].target == target}
    rules = {
        board: own.compare_rule(_facts(metric, case, rack, board, *place)) for board, place in places.items()
    }
    found = [rule for rule in rules.values() if rule is not None]
    series = tuple(
        GatedSeries(board, name, history.series(name))
        for board, rule in rules.items()
        if rule is not None and _was_measured(history, rack, board, case)
        for name in [format_series_id(rack, board, case.case_id, metric.name)]
    )
    if not found or not series:
        return None
    rule = min(found, key=lambda one: (one.tolerance, one.min_effect, one.source))
    kind = next(iter(places.values()))[0].kind
    return GatedUnit(target, kind, case, metric, rule, own, series)


def _facts(
    metric: Metric, case: Case, rack: str, board: str, what: SessionBoard, air: str
) -> dict[str, Scalar]:
    return series_facts(
        metric.name,
        case.parameters,
        kind=what.kind,
        rack=rack,
        target=what.target,
        board=board,
        air=air,
    )


def _was_measured(history: History, rack: str, board: str, case: Case) -> bool:
    start = f"{rack}/{board}/{case.case_id}/"
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


def unmeasured(history: History, rack: str, thresholds: Mapping[str, Thresholds]) -> Iterator[str]:
    """Yield, in words, each case of the suite that a board of the rack has no value of."""
    for board in boards_of(history, rack):
        for own in thresholds.values():
            for case in own.suites.get(SUITE, ()):
                if not _was_measured(history, rack, board, case):
                    yield f"{board}: {case.bench} {own.case_label(case.parameters)}"
