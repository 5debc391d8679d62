"""The change points of all series of a history, what moved together, and what they mean."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hil.history import History
from hil.nightly.change_points import ChangePoint, SeriesChanges, analyse
from hil.nightly.nights import Night, nights_of
from hil.thresholds import Thresholds

TOGETHER_NIGHTS = 1


@dataclass(frozen=True)
class SeriesName:
    """A series id, taken apart."""

    rack: str
    board: str
    case_id: str
    metric: str

    @property
    def bench(self) -> str:
        return self.case_id.partition("/")[0]


@dataclass(frozen=True)
class Finding:
    """A change point as a person reads it.

    ``effect`` is worse, better or "" where the thresholds do not say which is which. ``kind`` is the board's,
    and says where noise was simulated.
    ``together`` are the other series of the rack in which a step of the environment shows too. ``age`` is how
    many nights of the series have shown it.
    """

    point: ChangePoint
    name: SeriesName
    kind: str
    effect: str
    together: tuple[str, ...] = ()

    @property
    def age(self) -> int:
        return self.point.nights

    def to_json(self) -> dict[str, Any]:
        point = self.point
        return {
            "series_id": point.series_id,
            "kind": self.kind,
            "night": point.night.isoformat(),
            "nights": point.nights,
            "cause": point.cause,
            "effect": self.effect,
            "of_ratio": point.of_ratio,
            "change": point.change,
            "low": point.low,
            "high": point.high,
            "good": point.good,
            "bad": point.bad,
            "conditions": list(point.conditions),
            "together": list(self.together),
            "note": point.note,
        }


@dataclass(frozen=True)
class Survey:
    """``notes`` maps what stood in the way of judging to the series that it concerns."""

    findings: tuple[Finding, ...]
    series: int
    nights: int
    notes: Mapping[str, tuple[str, ...]]

    def new(self, nights: int) -> tuple[Finding, ...]:
        """Return the steps of the firmware for the worse that began within the last ``nights`` nights."""
        return tuple(
            finding
            for finding in self.findings
            if finding.point.cause == "firmware" and finding.effect != "better" and finding.age <= nights
        )


def split_series_id(series_id: str) -> SeriesName:
    """Take apart what hil.model.format_series_id made."""
    rack, board, rest = series_id.split("/", 2)
    case_id, _slash, metric = rest.rpartition("/")
    return SeriesName(rack, board, case_id, metric)


def survey(
    history: History, thresholds: Mapping[str, Thresholds], *, racks: Collection[str] = (), last: int = 120
) -> Survey:
    """Judge the last nights of every series, of some racks or all."""
    kinds = _kinds(history)
    wanted = sorted({series_id for series_id, role in history.entries if role == "candidate"})
    results: list[SeriesChanges] = []
    longest = 0
    for series_id in wanted:
        if racks and split_series_id(series_id).rack not in racks:
            continue
        nights: list[Night] = nights_of(history, series_id)[-last:]
        if nights:
            longest = max(longest, len(nights))
            results.append(analyse(series_id, nights))
    points = [point for result in results for point in result.points]
    findings = [_finding(point, points, thresholds, kinds) for point in points]
    findings.sort(key=lambda finding: (finding.point.night, finding.point.series_id))
    return Survey(tuple(findings), len(results), longest, _notes(results))


def _finding(
    point: ChangePoint,
    points: Sequence[ChangePoint],
    thresholds: Mapping[str, Thresholds],
    kinds: Mapping[tuple[str, str], str],
) -> Finding:
    name = split_series_id(point.series_id)
    metrics = thresholds[name.bench].metrics if name.bench in thresholds else {}
    effect = ""
    if name.metric in metrics:
        grew_is_bad = metrics[name.metric].direction == "lower"
        effect = "worse" if (point.change > 0) == grew_is_bad else "better"
    kind = kinds.get((name.rack, name.board), "")
    return Finding(point, name, kind, effect, _together(point, points))


def _together(point: ChangePoint, points: Sequence[ChangePoint]) -> tuple[str, ...]:
    """Return the other series of the rack in which the environment made a step in these nights."""
    if point.cause != "environment":
        return ()
    rack = split_series_id(point.series_id).rack
    return tuple(
        other.series_id
        for other in points
        if other.cause == "environment"
        and other.series_id != point.series_id
        and split_series_id(other.series_id).rack == rack
        and abs((other.night - point.night).days) <= TOGETHER_NIGHTS
    )


def _kinds(history: History) -> dict[tuple[str, str], str]:
    """Return what each board is, by rack and name; with the words for noise that some night drew."""
    kinds: dict[tuple[str, str], str] = {}
    for session in history.sessions:
        for name, board in session.boards.items():
            drawn = session.conditions.get(f"{name}.noise_simulated") or "noise" in kinds.get(
                (session.rack, name), ""
            )
            kinds[session.rack, name] = f"{board.kind}, simulated noise" if drawn else board.kind
    return kinds


def _notes(results: Sequence[SeriesChanges]) -> dict[str, tuple[str, ...]]:
    notes: dict[str, tuple[str, ...]] = {}
    for result in results:
        for note in result.notes:
            notes[note] = (*notes.get(note, ()), result.series_id)
    return notes
