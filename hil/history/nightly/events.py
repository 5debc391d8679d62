# SPDX-License-Identifier: Apache-2.0
"""Events: change points told as what happened. One commit, one access point or one board is one event.

Whether chance explains a group of steps: of hundreds of series over months, some step by chance alone.

The p of a step is multiplied by how many series and nights it was looked for in (Bonferroni). Boards agree
independently on a firmware's step, so theirs are combined (Fisher 1925); series of one board share its
boots and boards of one rack its air, so of these the clearest counts alone.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hil.base import special
from hil.base.git import bisect_command
from hil.history.nightly import event_words
from hil.history.nightly.event_conditions import MINORITY, EventCause, FindingGroup, all_conditions, split
from hil.history.nightly.event_groups import groups_of
from hil.history.nightly.event_words import Benches, Effect, metric_of
from hil.history.nightly.survey import NightFinding, Survey
from hil.model import IMPORTED, UNREAL

ALPHA = 0.05  # of how many histories in which nothing happens chance may make an event, by this reckoning
_LEAST_P = 1e-300


def is_certain(group: FindingGroup, survey: Survey) -> bool:
    """Whether more than chance is needed for these steps among all that were looked for."""
    longest = max(map(len, survey.judged.values()), default=1)
    looked = math.log(max(1, len(survey.judged)) * longest)
    return _log_p(group) + looked <= math.log(ALPHA)


def _log_p(group: FindingGroup) -> float:
    boards = split(group.findings, lambda finding: (finding.name.rack, finding.name.board))
    own = [min(map(_log_p_of, part)) for part in boards]
    if group.cause != "firmware":
        return min(own)
    p = special.chdtrc(2 * len(own), -2.0 * sum(own))
    return math.log(p) if p else -math.inf


def _log_p_of(finding: NightFinding) -> float:
    return math.log(max(finding.point.p_value, _LEAST_P))


_LEFT_OF_AN_ENDED = 0.5  # of a step's logarithm
_LEAST_HALF = 1e-9  # of an interval: figures that do not vary are the most certain
_RANKS = ("firmware", "board", "environment", "unclear")


@dataclass(frozen=True)
class NightEvent:
    """One thing that happened: the findings that belong together, the most telling first.

    ``change``, ``low`` and ``high`` (95 %) are the most telling series', relative (0.1 is ten per cent more).
    ``night`` is the first of the new level, ``nights`` how many nights every series of it shows. ``ended`` is
    the night in which it was taken back, None while it is open; ``open_nights`` how many nights it lasted or
    has lasted. ``good`` and ``bad`` are commits of a firmware's step, else "". ``bisect`` finds the
    commit of a firmware's step that is no improvement, else "". ``blocking`` says that a metric of it can
    fail a run.
    """

    cause: EventCause
    effect: Effect
    night: datetime.date
    nights: int
    ended: datetime.date | None
    open_nights: int
    good: str
    bad: str
    headline: str
    sentence: str
    bisect: str
    note: str
    blocking: bool
    findings: tuple[NightFinding, ...]

    @property
    def telling(self) -> NightFinding:
        return self.findings[0]

    @property
    def change(self) -> float:
        return self.telling.point.change

    @property
    def low(self) -> float:
        return self.telling.point.low

    @property
    def high(self) -> float:
        return self.telling.point.high

    @property
    def of_ratio(self) -> bool:
        return self.telling.point.of_ratio

    @property
    def racks(self) -> tuple[str, ...]:
        return tuple(sorted({finding.name.rack for finding in self.findings}))

    @property
    def products(self) -> tuple[str, ...]:
        """Whose series these are, "" where no product is named."""
        return tuple(sorted({finding.name.product for finding in self.findings}))

    @property
    def boards(self) -> tuple[str, ...]:
        """The boards, each with its rack: "lab/e1"."""
        return tuple(sorted({f"{finding.name.rack}/{finding.name.board}" for finding in self.findings}))

    @property
    def conditions(self) -> tuple[str, ...]:
        return all_conditions(self.findings)

    @property
    def series_ids(self) -> tuple[str, ...]:
        return tuple(finding.point.series_id for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        return {
            "cause": self.cause,
            "effect": self.effect,
            **({"products": list(self.products)} if any(self.products) else {}),
            "racks": list(self.racks),
            "boards": list(self.boards),
            "night": self.night.isoformat(),
            "nights": self.nights,
            "state": "ended" if self.ended else "open",
            "ended": self.ended.isoformat() if self.ended else "",
            "open_nights": self.open_nights,
            "change": self.change,
            "low": self.low,
            "high": self.high,
            "of_ratio": self.of_ratio,
            "good": self.good,
            "bad": self.bad,
            "conditions": list(self.conditions),
            "headline": self.headline,
            "sentence": self.sentence,
            "bisect": self.bisect,
            "note": self.note,
            "series_ids": list(self.series_ids),
        }


def events_of(survey: Survey, *, thresholds: Benches) -> tuple[NightEvent, ...]:
    """Return what happened, what matters most first; a finding is in one event, or by_chance().

    Steps of the firmware for the worse come first, those of blocking metrics before advice, the larger before
    the smaller; then boards, the environment, what is unclear, and in the end what became better.
    """
    certain = [group for group in groups_of(survey) if is_certain(group, survey)]
    found = [_event(group, survey, thresholds) for group in certain]
    return tuple(sorted(found, key=_rank))


def by_chance(survey: Survey, events: Sequence[NightEvent]) -> tuple[NightFinding, ...]:
    """Return the findings of no event: among so many series over so many nights, chance explains them."""
    told = {id(finding) for event in events for finding in event.findings}
    return tuple(finding for finding in survey.findings if id(finding) not in told)


def new_steps(events: Sequence[NightEvent], nights: int) -> tuple[NightEvent, ...]:
    """Return the firmware's events, but for those for the better, of which a series shows the step for at
    most ``nights`` nights.
    """
    return tuple(
        event
        for event in events
        if event.cause == "firmware" and event.effect != "better" and event.nights <= nights
    )


def _event(group: FindingGroup, survey: Survey, benches: Benches) -> NightEvent:
    product, ended = survey.has_products, _ended(group.findings, survey)
    effect = _effect(group.findings)
    order = sorted(group.findings, key=lambda finding: _telling(finding, group, effect, benches))
    findings, telling = tuple(order), order[0]
    to_find = group.cause == "firmware" and effect != "better"  # the gate fails no run for an improvement
    return NightEvent(
        cause=group.cause,
        effect=effect,
        night=group.night,
        nights=min(finding.point.nights for finding in findings),
        ended=ended,
        open_nights=_lasted(group, ended, survey),
        good=group.good,
        bad=group.bad,
        headline=event_words.headline(
            group, telling, effect, benches, product=product, kinds=survey.has_kinds
        ),
        sentence=event_words.sentence(group, telling, benches, product=product),
        bisect=bisect_command(group.good, group.bad, telling.name.case_id) if to_find else "",
        note=event_words.note(group, effect),
        blocking=any(_blocks(finding, benches) for finding in findings),
        findings=findings,
    )


def _ended(findings: Sequence[NightFinding], survey: Survey) -> datetime.date | None:
    """Return the night by which half of the series had lost half of their step; None while it is open."""
    back = sorted(night for finding in findings if (night := _taken_back(finding, survey)) is not None)
    half = (len(findings) + 1) // 2
    return back[half - 1] if len(back) >= half else None


def _taken_back(finding: NightFinding, survey: Survey) -> datetime.date | None:
    """Return the night in which the later steps of a series have undone half of this one, on its scale."""
    step, left = _log(finding.point.change), 1.0
    for point in survey.points_of(finding.point.series_id):
        if point.night <= finding.point.night or point.of_ratio != finding.point.of_ratio:
            continue
        left += _log(point.change) / step if step else 0.0
        if left <= _LEFT_OF_AN_ENDED:
            return point.night
    return None


def _lasted(group: FindingGroup, ended: datetime.date | None, survey: Survey) -> int:
    """Count the nights of an event's series from its own night to its end, or to the last one."""
    series = {finding.point.series_id for finding in group.findings}
    nights = {night.date for series_id in series for night in survey.judged.get(series_id, ())}
    return sum(group.night <= night and (ended is None or night < ended) for night in nights)


def _effect(findings: Sequence[NightFinding]) -> Effect:
    """Return which way a step goes; a small minority of its series does not make it one of both signs."""
    worse = sum(finding.effect == "worse" for finding in findings)
    better = sum(finding.effect == "better" for finding in findings)
    if worse and better and min(worse, better) >= MINORITY * (worse + better):
        return "mixed"
    if not worse and not better:
        return ""
    return "worse" if worse > better else "better"


def _telling(
    finding: NightFinding, group: FindingGroup, effect: Effect, benches: Benches
) -> tuple[object, ...]:
    """Rank a finding: of the event's cause and effect, not virtual, blocking, then by how sure its size is.

    By certainty and not by size, for the largest of many estimates is mostly too large.
    """
    point = finding.point
    low, change, high = map(_log, (point.low, point.change, point.high))
    certainty = abs(change) / max((high - low) / 2, _LEAST_HALF)
    return (
        group.cause == "firmware" and point.cause != "firmware",
        effect in ("worse", "better") and finding.effect != effect,
        effect == "mixed" and finding.effect != "worse",
        finding.kind.startswith((*UNREAL, IMPORTED)),
        not _blocks(finding, benches),
        -certainty,
        point.series_id,
    )


def _log(change: float) -> float:
    return math.log1p(max(change, -1 + 1e-12))


def _blocks(finding: NightFinding, benches: Benches) -> bool:
    metric = metric_of(finding, benches)
    return metric is not None and (metric.blocking or metric.compared)


def _rank(event: NightEvent) -> tuple[object, ...]:
    newest_first = -event.night.toordinal()
    if event.effect == "better":
        return len(_RANKS), _RANKS.index(event.cause), newest_first, -abs(event.change), event.series_ids
    rank = _RANKS.index(event.cause)
    if event.cause == "firmware":
        size = round(abs(event.change), 2)  # what differs by less than a per cent is equal
        return rank, (not event.effect, not event.blocking), -size, newest_first, event.series_ids
    return rank, 0, newest_first, -abs(event.change), event.series_ids
