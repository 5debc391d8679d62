"""Which findings belong together: steps of one cause, in nights and commits that fit."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Sequence

from hil.history.nightly.change_points import Cause
from hil.history.nightly.event_conditions import Group, most_common_night, near, one_a_series, split, without
from hil.history.nightly.event_firmware import firmware_groups, with_unsure
from hil.history.nightly.neighbours import Neighbours
from hil.history.nightly.straying import Straying
from hil.history.nightly.survey import TOGETHER_NIGHTS, Finding, Survey


def groups_of(survey: Survey) -> list[Group]:
    """Put every finding into exactly one group."""
    straying = Straying(survey)
    firmware = firmware_groups(_caused(survey, "firmware"), survey.judged, straying)
    firmware, unclear = with_unsure(firmware, _caused(survey, "unclear"))
    neighbours = Neighbours(survey)
    environment = [
        group
        for part in split(_caused(survey, "environment"), lambda finding: finding.name.rack)
        for cluster in _with_strays(list(_by_night(part)), straying)
        for group in _boards_apart(cluster, neighbours)
    ]
    rest = [
        Group("unclear", tuple(cluster))
        for part in split(unclear, lambda finding: (finding.name.rack, finding.point.note))
        for cluster in _by_night(part)
    ]
    return [*firmware, *environment, *rest]


def _caused(survey: Survey, cause: Cause) -> list[Finding]:
    return [finding for finding in survey.findings if finding.point.cause == cause]


def _by_night(findings: Sequence[Finding]) -> Iterator[list[Finding]]:
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


def _with_strays(clusters: Sequence[Sequence[Finding]], straying: Straying) -> list[list[Finding]]:
    """Give boards that put a step beside the others to the larger step, where their own figures allow it."""
    found: list[list[Finding]] = []
    for cluster in sorted(clusters, key=lambda cluster: -len(cluster)):
        rest: list[Finding] = []
        for part in split(cluster, lambda finding: (finding.name.board, finding.effect)):
            larger = next((other for other in found if _stray(part, other, straying)), rest)
            larger += part
        if rest:
            found.append(rest)
    return found


def _stray(part: Sequence[Finding], other: Sequence[Finding], straying: Straying) -> bool:
    known = {finding.point.series_id for finding in other}
    return (
        part[0].effect in {finding.effect for finding in other}
        and not any(finding.point.series_id in known for finding in part)
        and straying.allows_together(part, most_common_night(other))
    )


def _boards_apart(cluster: Sequence[Finding], neighbours: Neighbours) -> Iterator[Group]:
    """Yield the boards that moved while their neighbours did not, and the rest as the rack's."""
    rest: list[Finding] = []
    for part in split(cluster, lambda finding: finding.name.board):
        alone = sum(map(neighbours.stayed, part))
        if 2 * alone > len(part):
            yield Group("board", tuple(part))
        else:
            rest += part
    if rest:
        yield Group("environment", tuple(rest))
