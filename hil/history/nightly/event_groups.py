# SPDX-License-Identifier: Apache-2.0
"""Which findings belong together: steps of one cause, in nights and commits that fit.

The firmware's are put together by the commits that they suspect, of each product by themselves; a board's own
are told from its rack's by its neighbours, the same case and metric of the same product on other boards. What
happens to a rack, it happens to all products on it.
"""

from __future__ import annotations

import datetime
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hil.history.nightly.change_points import RATIO_UNSURE, Cause
from hil.history.nightly.event_conditions import (
    MINORITY,
    FindingGroup,
    Straying,
    most_common_night,
    near,
    one_a_series,
    split,
    without,
)
from hil.history.nightly.nights import Night
from hil.history.nightly.survey import NightFinding, Survey
from hil.metrics.words import metric_words
from hil.model import SeriesId

WINDOW = datetime.timedelta(days=14)  # before a step and after it
NIGHTS_MIN = 2  # on either side; a board that left, or came, says nothing
FOLLOWED = 0.5  # a neighbour moved with a board where it moved by this share of its step


class Neighbours:
    """Looks up what was judged beside a series."""

    def __init__(self, survey: Survey) -> None:
        self._judged: Mapping[str, Sequence[Night]] = survey.judged
        self._beside: dict[tuple[str, ...], list[str]] = {}
        for series_id in survey.judged:
            self._beside.setdefault(_beside(SeriesId.parse(series_id)), []).append(series_id)
        self._steps: dict[str, list[datetime.date]] = {}
        for finding in survey.findings:
            if finding.point.cause != "firmware":
                self._steps.setdefault(finding.point.series_id, []).append(finding.point.night)

    def stayed(self, finding: NightFinding) -> bool:
        """Whether other boards measured the same in the nights around a step, and none of them moved."""
        name, point = finding.name, finding.point
        size = math.log1p(point.change)
        shares = []
        for series_id in self._beside.get(_beside(name), ()):
            moved = None if series_id == point.series_id else _moved(self._judged[series_id], point.night)
            if moved is None:
                continue
            if self._has_step(series_id, point.night):
                return False
            shares.append(moved / size)
        return bool(shares) and statistics.median(shares) < FOLLOWED

    def _has_step(self, series_id: str, night: datetime.date) -> bool:
        return any(abs((step - night).days) <= TOGETHER_NIGHTS for step in self._steps.get(series_id, ()))


def _beside(name: SeriesId) -> tuple[str, ...]:
    return name.product, name.rack, name.case_id, name.metric


def _moved(nights: Sequence[Night], step: datetime.date) -> float | None:
    """Return the change of the level at a night (logarithm); None if a side has too few nights."""
    before = [night.level for night in nights if step - WINDOW <= night.date < step]
    after = [night.level for night in nights if step <= night.date < step + WINDOW]
    if min(len(before), len(after)) < NIGHTS_MIN:
        return None
    return statistics.median(after) - statistics.median(before)


TOGETHER_NIGHTS = 1  # a step of the environment shows within so many nights
NEAR_NIGHTS = 2  # a step of the firmware shows on all boards within so many nights
AGREED = 0.9  # the commits that this share of an event's findings name

_Position = tuple[datetime.date, int]


def firmware_groups(
    findings: Sequence[NightFinding], judged: Mapping[str, Sequence[Night]], straying: Straying
) -> list[FindingGroup]:
    """Return the steps of the firmware: same effect, commits that overlap, nights near to each other.

    Where one quantity of a case moved both ways by the same commits, that is one step; and series of which
    the thresholds do not say what is worse go with those of which they do.
    """
    order = _Order(judged)
    found: list[FindingGroup] = []
    for part in split(findings, lambda finding: finding.effect):
        found += _with_strays(list(_of_firmware(part, order)), straying)
    return _joined(found, order)


class _Order:
    """The order of commits: that in which nights first measured them, on whichever rack."""

    def __init__(self, judged: Mapping[str, Sequence[Night]]) -> None:
        self._first: dict[str, _Position] = {}
        for nights in judged.values():
            seen: Counter[datetime.date] = Counter()
            for night in nights:
                position = (night.date, seen[night.date])
                seen[night.date] += 1
                self._first[night.commit] = min(position, self._first.get(night.commit, position))
        self._commits = sorted(self._first, key=lambda commit: self._first[commit])
        self._number = {commit: number for number, commit in enumerate(self._commits)}

    def suspects(self, good: str, bad: str) -> range:
        """Return the numbers of the commits after ``good`` up to ``bad``."""
        last = self._number[bad]
        return range(min(self._number[good] + 1, last), last + 1)

    def around(self, best: int, findings: Sequence[NightFinding]) -> range:
        """Return the stretch of commits around ``best`` that nearly all findings suspect."""
        votes = self.votes(findings)
        enough = AGREED * votes[best]
        start, end = best, best
        while votes[start - 1] >= enough:
            start -= 1
        while votes[end + 1] >= enough:
            end += 1
        return range(start, end + 1)

    def votes(self, findings: Iterable[NightFinding]) -> Counter[int]:
        return Counter(number for finding in findings for number in self.of(finding))

    def of(self, finding: NightFinding) -> range:
        return self.suspects(finding.point.good, finding.point.bad)

    def ends(self, suspects: range, findings: Sequence[NightFinding]) -> tuple[str, str]:
        """Return the last good commit, as some finding names it, and the first bad one for sure."""
        goods = sorted(finding.point.good for finding in findings)
        before = [commit for commit in goods if self._number[commit] < suspects[0]]
        good = max(before, key=lambda commit: self._number[commit], default=goods[0])
        return good, self._commits[suspects[-1]]


def _of_firmware(findings: Sequence[NightFinding], order: _Order) -> Iterator[FindingGroup]:
    """Yield events: the commit that most findings suspect, what suspects it in these nights, and so on.

    Findings vote, so that one with a wide range does not tie two steps together.
    """
    left = list(findings)
    while left:
        votes = order.votes(left)
        best = min(votes, key=lambda number: (-votes[number], number))
        sure = [finding for finding in left if best in order.of(finding)]
        night = most_common_night(sure)
        sure = [finding for finding in sure if near(finding, night, NEAR_NIGHTS)]
        suspects = order.around(best, sure)
        close = [finding for finding in left if near(finding, night, NEAR_NIGHTS)]
        members = one_a_series((finding for finding in close if _overlap(order.of(finding), suspects)), night)
        yield FindingGroup("firmware", tuple(members), *order.ends(suspects, members))
        left = without(left, members)


def _with_strays(groups: Sequence[FindingGroup], straying: Straying) -> list[FindingGroup]:
    """Give series that put a step beside the others to the larger step of their quantity, where they can.

    A commit shows on all boards in one night, so a few that say another night are noise, as long as their own
    figures allow it. The range stays that of the larger step.
    """
    found: list[FindingGroup] = []
    for group in sorted(groups, key=lambda group: -len(group.findings)):
        fitting = [number for number, other in enumerate(found) if _strays(group, other, straying)]
        if fitting:
            best = min(fitting, key=lambda number: abs((group.night - found[number].night).days))
            found[best] = replace(found[best], findings=(*found[best].findings, *group.findings))
        else:
            found.append(group)
    return found


def _strays(group: FindingGroup, other: FindingGroup, straying: Straying) -> bool:
    return (
        _quantities(group) <= _quantities(other)
        and not _series(group) & _series(other)
        and straying.allows(group.findings, other.night)
    )


def _joined(groups: Sequence[FindingGroup], order: _Order) -> list[FindingGroup]:
    """Join steps of different effects that are one all the same."""
    found: list[FindingGroup] = []
    for group in sorted(groups, key=lambda group: -len(group.findings)):
        for number, other in enumerate(found):
            if _same_step(group, other, order) and (_contrary(group, other) or _neutral(group, other)):
                members = (*other.findings, *group.findings)
                ends = order.suspects(other.good, other.bad), order.suspects(group.good, group.bad)
                both = range(max(ends[0][0], ends[1][0]), min(ends[0][-1], ends[1][-1]) + 1)
                found[number] = FindingGroup("firmware", members, *order.ends(both, members))
                break
        else:
            found.append(group)
    return found


def _same_step(group: FindingGroup, other: FindingGroup, order: _Order) -> bool:
    return (
        abs((group.night - other.night).days) <= NEAR_NIGHTS
        and _overlap(order.suspects(group.good, group.bad), order.suspects(other.good, other.bad))
        and not _series(group) & _series(other)
    )


def _contrary(group: FindingGroup, other: FindingGroup) -> bool:
    """Whether the smaller group and the other are a quantity of a case, for the worse and for the better."""
    return (
        _effects(group) | _effects(other) >= {"worse", "better"}
        and len(group.findings) >= MINORITY * (len(group.findings) + len(other.findings))
        and bool(_quantities(group) & _quantities(other))
    )


def _neutral(group: FindingGroup, other: FindingGroup) -> bool:
    """Whether exactly one of two groups is worse or better at all."""
    return (_effects(group) == {""}) != (_effects(other) == {""})


def _effects(group: FindingGroup) -> set[str]:
    return {finding.effect for finding in group.findings}


def _quantities(group: FindingGroup) -> set[tuple[str, str]]:
    return {(finding.name.case_id, metric_words(finding.name.metric).quantity) for finding in group.findings}


def _series(group: FindingGroup) -> set[str]:
    return {finding.point.series_id for finding in group.findings}


def with_unsure(
    groups: Sequence[FindingGroup], unclear: Sequence[NightFinding]
) -> tuple[list[FindingGroup], list[NightFinding]]:
    """Give steps of which the ratio moved, but not for certain, to the firmware's step that they show."""
    left, found = list(unclear), []
    for group in groups:
        known = {finding.point.series_id for finding in group.findings}
        racks = {(finding.name.product, finding.name.rack) for finding in group.findings}
        effects = {finding.effect for finding in group.findings}
        weak = [
            finding
            for finding in left
            if finding.point.note == RATIO_UNSURE
            and (finding.name.product, finding.name.rack) in racks
            and finding.effect in effects
            and finding.point.series_id not in known
            and near(finding, group.night, NEAR_NIGHTS)
        ]
        members = one_a_series(weak, group.night)
        found.append(replace(group, findings=(*group.findings, *members)))
        left = without(left, members)
    return found, left


def _overlap(one: range, other: range) -> bool:
    return max(one[0], other[0]) <= min(one[-1], other[-1])


def groups_of(survey: Survey) -> list[FindingGroup]:
    """Put every finding into exactly one group."""
    straying = Straying(survey)
    firmware = [
        group
        for part in split(_caused(survey, "firmware"), lambda finding: finding.name.product)
        for group in firmware_groups(part, _judged_of(part[0].name.product, survey), straying)
    ]
    firmware, unclear = with_unsure(firmware, _caused(survey, "unclear"))
    neighbours = Neighbours(survey)
    environment = [
        group
        for part in split(_caused(survey, "environment"), lambda finding: finding.name.rack)
        for cluster in _clusters_with_strays(list(_by_night(part)), straying)
        for group in _boards_apart(cluster, neighbours)
    ]
    rest = [
        FindingGroup("unclear", tuple(cluster))
        for part in split(unclear, lambda one: (one.name.product, one.name.rack, one.point.note))
        for cluster in _by_night(part)
    ]
    return [*firmware, *environment, *rest]


def _judged_of(product: str, survey: Survey) -> Mapping[str, Sequence[Night]]:
    """Return the nights of one product's series: the order of its commits is none of another's."""
    return {key: nights for key, nights in survey.judged.items() if SeriesId.parse(key).product == product}


def _caused(survey: Survey, cause: Cause) -> list[NightFinding]:
    return [finding for finding in survey.findings if finding.point.cause == cause]


def _by_night(findings: Sequence[NightFinding]) -> Iterator[list[NightFinding]]:
    """Yield what moved in a night or beside it, the night with most of it first."""
    left = list(findings)
    while left:
        counts = Counter(
            finding.point.night + datetime.timedelta(days=days)
            for finding in left
            for days in range(-TOGETHER_NIGHTS, TOGETHER_NIGHTS + 1)
        )
        own = Counter(finding.point.night for finding in left)
        best = min(own, key=lambda night: (-counts[night], -own[night], night))
        members = one_a_series((one for one in left if near(one, best, TOGETHER_NIGHTS)), best)
        yield members
        left = without(left, members)


def _clusters_with_strays(
    clusters: Sequence[Sequence[NightFinding]], straying: Straying
) -> list[list[NightFinding]]:
    """Give boards that put a step beside the others to the larger step, where their own figures allow it."""
    found: list[list[NightFinding]] = []
    for cluster in sorted(clusters, key=lambda cluster: -len(cluster)):
        rest: list[NightFinding] = []
        for part in split(cluster, lambda finding: (finding.name.board, finding.effect)):
            larger = next((other for other in found if _stray(part, other, straying)), rest)
            larger += part
        if rest:
            found.append(rest)
    return found


def _stray(part: Sequence[NightFinding], other: Sequence[NightFinding], straying: Straying) -> bool:
    known = {finding.point.series_id for finding in other}
    return (
        part[0].effect in {finding.effect for finding in other}
        and not any(finding.point.series_id in known for finding in part)
        and straying.allows_together(part, most_common_night(other))
    )


def _boards_apart(cluster: Sequence[NightFinding], neighbours: Neighbours) -> Iterator[FindingGroup]:
    """Yield the boards that moved while their neighbours did not, and the rest as the rack's."""
    rest: list[NightFinding] = []
    for part in split(cluster, lambda finding: finding.name.board):
        alone = sum(map(neighbours.stayed, part))
        if 2 * alone > len(part):
            yield FindingGroup("board", tuple(part))
        else:
            rest += part
    if rest:
        yield FindingGroup("environment", tuple(rest))
