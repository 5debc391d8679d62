# SPDX-License-Identifier: Apache-2.0
"""Who owns each loss: the first point where a message is missing, or nobody who can be named.

Evidence is of two kinds. A sighting proves that a message passed a point, and with it all earlier ones. That
a message is missing at a point is proven only where somebody looked there and cannot have overlooked it. The
owner is the point behind the last one that is proven to be passed, if the message is proven to be missing
there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hil.base.errors import FirmwareError
from hil.network.ledger.evidence import NOT_ACCEPTED, Arrival, Handed, LossEvidence, Outcome, Sighting, Tcp
from hil.network.ledger.points import OWNERS, LossPoint, Owner

_OUTCOMES, _TCP_VALUES = frozenset(Outcome), frozenset(Tcp)
_TCP_KNOWN = frozenset({Tcp.NEVER_TRANSMITTED, Tcp.TRANSMITTED, Tcp.ACKNOWLEDGED})
_CAPTURED = (LossPoint.ACCESS_POINT, LossPoint.BROKER_IN, LossPoint.BROKER_OUT)
_COUNTED = (LossPoint.DEVICE_CALL, LossPoint.DEVICE_TCP, *_CAPTURED)  # that arrived is counted as that
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One message. ``passed`` is the last point that it is proven to have passed, None where none is.
    ``times_us`` are when it was first seen at each point (wall clock), for those that note a time."""

    number: int
    owner: Owner
    passed: LossPoint | None
    arrivals: int
    times_us: Mapping[LossPoint, int]


@dataclass(frozen=True)
class Ledger:
    """A line a message, in the order of their numbers. The sum over all owners is the number sent.

    ``out_of_order_count`` are messages that came first after one with a higher number had come.
    """

    lines: tuple[LedgerLine, ...]
    observed: frozenset[LossPoint]
    duplicates_count: int
    out_of_order_count: int

    def count(self, owner: Owner) -> int:
        """Return how many messages have this owner."""
        return sum(line.owner is owner for line in self.lines)

    def passed_count(self, point: LossPoint) -> int:
        """Return how many messages are proven to have passed a point: seen there, or later."""
        return sum(line.passed is not None and line.passed >= point for line in self.lines)

    def facts(self) -> Mapping[str, int | None]:
        """Return the record's facts: sent_count, arrived_count, lost_…_count, seen_…_count (messages proven
        to have passed; None where nobody looked), duplicates_count, out_of_order_count."""
        counts = Counter(line.owner for line in self.lines)
        arrived = counts[Owner.ARRIVED]
        lost = {f"lost_{owner.word}_count": counts[owner] for owner in OWNERS if owner}
        seen = {
            f"seen_{point.word}_count": self.passed_count(point) if point in self.observed else None
            for point in _COUNTED
        }
        sums = {
            "sent_count": len(self.lines),
            "arrived_count": arrived,
            "lost_count": len(self.lines) - arrived,
        }
        order = {"duplicates_count": self.duplicates_count, "out_of_order_count": self.out_of_order_count}
        return {**sums, **lost, **seen, **order}


def attribute(evidence: LossEvidence) -> Ledger:
    """Name each loss's owner.

    Raises FirmwareError: a number came that was never sent, one was sent twice, or a row's outcome or tcp is
    none of the values that exist.
    """
    handed = sorted(evidence.handed, key=lambda one: one.number)
    sightings = _sightings(evidence)
    _check_rows(handed)
    _check_numbers(handed, sightings, evidence.arrivals)
    acknowledged = frozenset[int]().union(*(sighting.acknowledged for sighting in sightings.values()))
    arrivals = Counter(arrival.number for arrival in evidence.arrivals)
    first_us = _first_times(evidence.arrivals)
    lines = []
    for one in handed:
        passed = _last_passed(one, sightings, acknowledged, arrivals)
        times = {point: seen.seen[one.number] for point, seen in sightings.items() if one.number in seen.seen}
        if one.number in first_us:
            times[LossPoint.SUBSCRIBER] = first_us[one.number]
        owner = _owner(one, passed, sightings)
        lines.append(LedgerLine(one.number, owner, passed, arrivals[one.number], times))
    return Ledger(
        lines=tuple(lines),
        observed=_observed(handed, sightings),
        duplicates_count=len(evidence.arrivals) - len(first_us),
        out_of_order_count=_out_of_order(evidence.arrivals),
    )


def _sightings(evidence: LossEvidence) -> Mapping[LossPoint, Sighting]:
    """Return what captures showed, where somebody captured."""
    captures = (evidence.access_point, evidence.broker_in, evidence.broker_out)
    return {point: found for point, found in zip(_CAPTURED, captures, strict=True) if found is not None}


def _last_passed(
    one: Handed,
    sightings: Mapping[LossPoint, Sighting],
    acknowledged: Collection[int],
    arrived: Mapping[int, int],
) -> LossPoint | None:
    """Return the last point that a message is proven to have passed."""
    if arrived.get(one.number):
        return LossPoint.SUBSCRIBER
    proven: list[LossPoint] = [point for point, sighting in sightings.items() if one.number in sighting.seen]
    if one.number in acknowledged or (one.qos > 0 and one.outcome == Outcome.OK):
        proven.append(LossPoint.BROKER_IN)
    if one.tcp == Tcp.ACKNOWLEDGED:  # by whoever ends the connection, which is beyond the air
        proven.append(LossPoint.ACCESS_POINT)
    if one.tcp == Tcp.TRANSMITTED:
        proven.append(LossPoint.DEVICE_TCP)
    if one.outcome not in NOT_ACCEPTED:
        proven.append(LossPoint.DEVICE_CALL)
    return max(proven, default=None)


def _owner(one: Handed, passed: LossPoint | None, sightings: Mapping[LossPoint, Sighting]) -> Owner:
    if passed is LossPoint.SUBSCRIBER:
        return Owner.ARRIVED
    behind = LossPoint(passed + 1) if passed else LossPoint.DEVICE_CALL
    return Owner(behind) if _is_missing(one, behind, sightings) else Owner.UNDETERMINED


def _is_missing(one: Handed, point: LossPoint, sightings: Mapping[LossPoint, Sighting]) -> bool:
    """Return whether a message that no one saw at a point is thereby proven to be missing there."""
    if point is LossPoint.DEVICE_CALL:
        return one.refused
    if point is LossPoint.DEVICE_TCP:
        return one.tcp == Tcp.NEVER_TRANSMITTED
    if point is LossPoint.SUBSCRIBER:
        return True  # its application notes each message that it is given
    return point in sightings and sightings[point].complete


def _observed(handed: Iterable[Handed], sightings: Mapping[LossPoint, Sighting]) -> frozenset[LossPoint]:
    """Return where somebody looked, even where some of it was missed."""
    points = {LossPoint.DEVICE_CALL, LossPoint.SUBSCRIBER, *sightings}
    if any(one.tcp in _TCP_KNOWN for one in handed):
        points.add(LossPoint.DEVICE_TCP)
    return frozenset(points)


def _check_rows(handed: Sequence[Handed]) -> None:
    """Raise FirmwareError where the board's own rows cannot be: a number twice, a value that is none."""
    times_sent = Counter(one.number for one in handed)
    if twice := [number for number, times in times_sent.items() if times > 1]:
        raise FirmwareError(
            f"The loss ledger follows {len(handed)} messages, but the board's rows hold "
            f"{_named(twice)} more than once.",
            next_step="a row's number is its place over all bursts; look at the bench's source.",
        )
    for one in handed:
        if one.outcome not in _OUTCOMES or one.tcp not in _TCP_VALUES:
            raise FirmwareError(
                f"The board's row of message {one.number} has outcome {one.outcome} and tcp {one.tcp}; "
                f"expected outcome {_range(_OUTCOMES)}, tcp {_range(_TCP_VALUES)}.",
                next_step="board and harness are of different versions: build and flash again.",
            )


def _check_numbers(
    handed: Iterable[Handed], sightings: Mapping[LossPoint, Sighting], arrivals: Iterable[Arrival]
) -> None:
    """Raise FirmwareError where a message was seen that the board never sent."""
    sent = {one.number for one in handed}
    seen_at: dict[str, Iterable[int]] = {
        f"at {point.word}": {*sighting.seen, *sighting.acknowledged} for point, sighting in sightings.items()
    }
    seen_at["at the subscriber"] = {arrival.number for arrival in arrivals}
    for where, numbers in seen_at.items():
        if strange := sorted(number for number in numbers if number not in sent):
            raise FirmwareError(
                f"The loss ledger found {_named(strange)} {where}, which is not among the "
                f"{len(sent)} messages in the board's rows, although it has the nonce of this case.",
                next_step="look at the payloads in the capture (--keep-captures) and at the bench's source.",
            )


def _named(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return f"number {', '.join(map(str, numbers[:_SHOWN]))}{more}"


def _range(values: Collection[int]) -> str:
    return f"{min(values):d} to {max(values):d}"


def _first_times(arrivals: Iterable[Arrival]) -> Mapping[int, int]:
    """Return when each message came first; the wall clock may have been set in between."""
    first: dict[int, int] = {}
    for arrival in arrivals:
        first.setdefault(arrival.number, arrival.time_us)
    return first


def _out_of_order(arrivals: Iterable[Arrival]) -> int:
    """Count messages that came for the first time after one with a higher number."""
    came: set[int] = set()
    highest, count = -1, 0
    for arrival in arrivals:
        count += arrival.number not in came and arrival.number < highest
        came.add(arrival.number)
        highest = max(highest, arrival.number)
    return count
