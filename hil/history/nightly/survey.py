# SPDX-License-Identifier: Apache-2.0
"""The change points of all series of a history, and what they mean."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hil.history.nightly.change_points import ChangePoint, SeriesChanges, analyse
from hil.history.nightly.nights import Night, NightReader
from hil.metrics.sessions import History
from hil.model import IMPORTED, SeriesId
from hil.thresholds import Thresholds


@dataclass(frozen=True)
class NightFinding:
    """A change point as a person reads it.

    ``effect`` is worse, better or "" where the thresholds do not say which is which. ``kind`` is the board's,
    and says where noise was simulated.
    """

    point: ChangePoint
    name: SeriesId
    kind: str
    effect: str

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
            "conditions": list(map(str, point.conditions)),
            "note": point.note,
        }


@dataclass(frozen=True)
class Survey:
    """``notes`` maps what stood in the way of judging to the series that it concerns, ``judged`` each series
    that was looked at to its nights in order of time. ``kinds`` are those of their boards.
    """

    findings: tuple[NightFinding, ...]
    series: int
    nights: int
    notes: Mapping[str, tuple[str, ...]]
    judged: Mapping[str, tuple[Night, ...]] = field(default_factory=dict)
    kinds: frozenset[str] = frozenset()

    def points_of(self, series_id: str) -> Sequence[ChangePoint]:
        """Return the change points of a series, in order of time."""
        return self._by_series.get(series_id, ())

    @functools.cached_property
    def _by_series(self) -> Mapping[str, Sequence[ChangePoint]]:
        found: dict[str, list[ChangePoint]] = {}
        for finding in self.findings:  # by night
            found.setdefault(finding.point.series_id, []).append(finding.point)
        return found

    @property
    def has_products(self) -> bool:
        """Whether what was looked at is of more than one product, so that words have to name them."""
        return len({SeriesId.parse(series_id).product for series_id in self.judged}) > 1

    @property
    def has_kinds(self) -> bool:
        """Whether headlines have to say of which kind a board is: they differ, or figures were imported."""
        return len(self.kinds) > 1 or IMPORTED in self.kinds


def survey(
    history: History,
    thresholds: Mapping[str, Thresholds],
    *,
    racks: Collection[str] = (),
    products: Collection[str] = (),
    last: int = 120,
) -> Survey:
    """Judge the last nights of every series, of some racks and products or all."""
    kinds = _kinds(history)
    wanted = sorted({series_id for series_id, role in history.entries if role == "candidate"})
    reader = NightReader(history)
    judged: dict[str, tuple[Night, ...]] = {}
    for series_id in wanted:
        name = SeriesId.parse(series_id)
        if (racks and name.rack not in racks) or (products and name.product not in products):
            continue
        nights = reader.nights(series_id, last)
        if nights:
            judged[series_id] = tuple(nights)
    results = [analyse(series_id, nights) for series_id, nights in judged.items()]
    longest = max(map(len, judged.values()), default=0)
    findings = [_finding(point, thresholds, kinds) for result in results for point in result.points]
    findings.sort(key=lambda finding: (finding.point.night, finding.point.series_id))
    there = {kinds.get((name.rack, name.board), "") for name in map(SeriesId.parse, judged)}
    return Survey(tuple(findings), len(results), longest, _notes(results), judged, frozenset(there))


def _finding(
    point: ChangePoint,
    thresholds: Mapping[str, Thresholds],
    kinds: Mapping[tuple[str, str], str],
) -> NightFinding:
    name = SeriesId.parse(point.series_id)
    metrics = thresholds[name.bench].metrics if name.bench in thresholds else {}
    effect = ""
    if name.metric in metrics:
        grew_is_bad = metrics[name.metric].direction == "lower"
        effect = "worse" if (point.change > 0) == grew_is_bad else "better"
    kind = kinds.get((name.rack, name.board), "")
    return NightFinding(point, name, kind, effect)


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
