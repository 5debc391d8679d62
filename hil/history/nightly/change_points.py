# SPDX-License-Identifier: Apache-2.0
"""Change points of a series over nights, and whose they are: the firmware's or the environment's.

The ratio of candidate to reference, both measured in one night, does not know what happened to the rack: a
step in it is the firmware's. A step in the candidate's own values that the ratio does not show is the
environment's.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from hil.base.numeric import np
from hil.history.nightly.divisive import (
    NIGHTS_MIN,
    OVERLAP_NIGHTS,
    Chain,
    chain,
    find_steps,
    interval,
    p_value,
    plausible,
)
from hil.history.nightly.nights import Night
from hil.model import IMPORTED, Scalar, SeriesId

Cause = Literal["firmware", "environment", "unclear"]

NEAR_NIGHTS = 3  # steps of ratio and raw values this near to each other are one
FOLLOWED_NIGHTS = 10  # the same where the ratio follows the raw values, which noise alone sets apart
RATIO_UNSURE = "the ratio moved too, but not for certain"
FOLLOWS = 0.5  # the ratio moved with the raw values where it moved by this share of it


class Changed(NamedTuple):
    """A condition, such as "e1.channel", that changed in a night."""

    key: str
    old: Scalar
    new: Scalar
    night: datetime.date

    def __str__(self) -> str:
        return f"{self.key}: {self.old} → {self.new} on {self.night}"


@dataclass(frozen=True)
class ChangePoint:
    """A step. ``change``, ``low`` and ``high`` (95 %) are relative (0.1 is ten per cent more): of the ratio
    where ``of_ratio``, else of the raw value. ``night`` is the first of the new level, which ``nights``
    nights show. ``good`` and ``bad`` are the commits of the last night that lies before a firmware's step for
    sure, and of the first that shows it for sure. ``conditions`` are what else changed around that night;
    ``note`` is why nobody is blamed. ``p_value`` is of Student's t-test of the levels before and after.
    """

    series_id: str
    night: datetime.date
    nights: int
    cause: Cause
    of_ratio: bool
    change: float
    low: float
    high: float
    good: str = ""
    bad: str = ""
    conditions: tuple[Changed, ...] = ()
    note: str = ""
    p_value: float = 0.0


@dataclass(frozen=True)
class SeriesChanges:
    """What became of one series: its change points in order of time, and what stood in the way of judging."""

    series_id: str
    nights: int
    points: tuple[ChangePoint, ...]
    notes: tuple[str, ...]


def analyse(series_id: str, nights: Sequence[Night]) -> SeriesChanges:
    """Find the change points of a series and say whose they are."""
    chains = chain(nights)
    firmware = [point for part in chains for point in _of_chain(series_id, part)]
    raw = [
        point for point in _of_raw(series_id, nights, chains, firmware) if not _told(point, firmware, nights)
    ]  # a step that the ratio shows is the ratio's to tell
    points = tuple(sorted((*firmware, *raw), key=lambda point: point.night))
    notes = () if SeriesId.parse(series_id).rack == IMPORTED else _notes(nights, chains)
    return SeriesChanges(series_id, len(nights), points, notes)


def _of_chain(series_id: str, part: Chain) -> list[ChangePoint]:
    steps = find_steps(part.ratios)
    found = []
    for n, step in enumerate(steps):
        start, _step, end = edges = _edges(steps, n, len(part.ratios))
        point = _point(series_id, part.nights, part.ratios, edges, of_ratio=True)
        found.append(_blamed(point, part.nights, *plausible(part.ratios, start, step, end)))
    return found


def _blamed(point: ChangePoint, nights: Sequence[Night], first: int, last: int) -> ChangePoint:
    """Name the commits between which the candidate's image changed in the nights of the step."""
    changed = [n for n in range(first, last + 1) if nights[n].firmware != nights[n - 1].firmware]
    if not changed:
        note = "the candidate's image is the same before and after, so it is not to blame"
        return replace(point, cause="unclear", note=note)
    return replace(
        point, cause="firmware", good=nights[changed[0] - 1].commit, bad=nights[changed[-1]].commit
    )


def _of_raw(
    series_id: str, nights: Sequence[Night], chains: Sequence[Chain], firmware: Sequence[ChangePoint]
) -> list[ChangePoint]:
    levels = [night.level for night in nights]
    steps = find_steps(levels)
    order = {night.date: n for n, night in enumerate(nights)}
    told = [order[point.night] for point in firmware]
    found = []
    for n in range(len(steps)):
        edges = _between(_edges(steps, n, len(levels)), told)
        point = _point(series_id, nights, levels, edges, of_ratio=False)
        moved = _ratio_across(nights, edges, chains)
        if moved is None:
            found.append(replace(point, cause="unclear", note=_unowned(series_id, nights, edges[1])))
        elif moved / math.log1p(point.change) >= FOLLOWS:
            found.append(replace(point, cause="unclear", note=RATIO_UNSURE))
        else:
            found.append(replace(point, cause="environment"))
    return found


def _unowned(series_id: str, nights: Sequence[Night], step: int) -> str:
    """Explain why there is no cause; imported series have commits but no reference."""
    if SeriesId.parse(series_id).rack != IMPORTED:
        return "without a reference in the nights before and after, nothing tells whose it is"
    before, since = (night.commit[:12] or "an unknown commit" for night in nights[step - 1 : step + 1])
    return (
        f"imported, so nothing tells whose it is: the last figure before is of {before}, the first of {since}"
    )


def _ratio_across(
    nights: Sequence[Night], edges: tuple[int, int, int], chains: Sequence[Chain]
) -> float | None:
    """Return the change of the ratio at a step of the raw values; None if one side has no ratio."""
    start, step, end = edges
    for part in chains:
        ratio_of = dict(zip(map(id, part.nights), part.ratios, strict=True))
        before = [ratio_of[id(night)] for night in nights[start:step] if id(night) in ratio_of]
        after = [ratio_of[id(night)] for night in nights[step:end] if id(night) in ratio_of]
        if before and after:
            return float(np.mean(after) - np.mean(before))
    return None


def _told(point: ChangePoint, firmware: Sequence[ChangePoint], nights: Sequence[Night]) -> bool:
    order = {night.date: n for n, night in enumerate(nights)}
    return any(
        abs(order[point.night] - order[other.night])
        <= (FOLLOWED_NIGHTS if _follows(point, other) else NEAR_NIGHTS)
        for other in firmware
    )


def _follows(point: ChangePoint, other: ChangePoint) -> bool:
    return point.note == RATIO_UNSURE and (point.change > 0) == (other.change > 0)


def _edges(steps: Sequence[int], n: int, length: int) -> tuple[int, int, int]:
    """Return where the level before a step begins, the step itself, and where the level after it ends."""
    edges = [0, *steps, length]
    return edges[n], edges[n + 1], edges[n + 2]


def _between(edges: tuple[int, int, int], told: Sequence[int]) -> tuple[int, int, int]:
    """Return the edges without what lies beyond the firmware's steps, which are not the environment's."""
    start, step, end = edges
    before = [other for other in told if start < other <= step - NIGHTS_MIN]
    after = [other for other in told if step + NIGHTS_MIN <= other < end]
    return max(before, default=start), step, min(after, default=end)


def _point(
    series_id: str,
    nights: Sequence[Night],
    logs: Sequence[float],
    edges: tuple[int, int, int],
    *,
    of_ratio: bool,
) -> ChangePoint:
    start, step, end = edges
    before, after = np.asarray(logs[start:step]), np.asarray(logs[step:end])
    change, low, high = (math.expm1(min(value, 700.0)) for value in interval(before, after))
    return ChangePoint(
        series_id,
        nights[step].date,
        end - step,
        "unclear",
        of_ratio,
        change,
        low,
        high,
        conditions=_conditions_around(nights, step),
        p_value=p_value(before, after),
    )


def _conditions_around(nights: Sequence[Night], step: int) -> tuple[Changed, ...]:
    """Return which conditions changed at the step, or in the night before or after it."""
    for n in (step, step - 1, step + 1):
        if 0 < n < len(nights):
            old, new = nights[n - 1].conditions, nights[n].conditions
            changed = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
            if changed:
                return tuple(Changed(key, old.get(key), new.get(key), nights[n].date) for key in changed)
    return ()


def _notes(nights: Sequence[Night], chains: Sequence[Chain]) -> tuple[str, ...]:
    notes = []
    alone = [night for night in nights if not night.ratios]
    reruled = sum(night.reruled for night in alone)
    if len(alone) > reruled:
        notes.append(f"{len(alone) - reruled} of {len(nights)} nights measured no reference: raw values only")
    if reruled:
        notes.append(
            f"in {reruled} of {len(nights)} nights the benchmarks' sources were others in the reference than "
            "in the candidate, which gives no ratio: renew the reference"
        )
    for part in chains[1:]:
        notes.append(
            f"the reference of {part.nights[0].date} was never measured beside the one before it, so the "
            "nights before are not set beside those after"
        )
    notes += [
        f"a reference was renewed after {overlap} {'night' if overlap == 1 else 'nights'} beside the one "
        f"before it; {OVERLAP_NIGHTS} make sure that no step comes of it"
        for part in chains
        for overlap in part.overlaps
        if overlap < OVERLAP_NIGHTS
    ]
    return tuple(notes)
