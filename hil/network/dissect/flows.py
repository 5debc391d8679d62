# SPDX-License-Identifier: Apache-2.0
"""One direction of a connection: its data in stream order, and what of it was sent again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hil.network.dissect.segments import MqttSegment, Pdu
from hil.network.dissect.tcp import unwrapped

_APPLICATION_DATA = 23  # TLS content type (RFC 8446, 5.1)


@dataclass(frozen=True, slots=True)
class SentSegment:
    """A segment that takes up sequence numbers: data, SYN or FIN.

    ``start`` and ``end`` do not wrap; ``new_bytes`` of its payload were not captured before.
    """

    segment: MqttSegment
    start: int
    end: int
    new_bytes: int


@dataclass
class Flow:
    """One direction of a connection, segment by segment as captured."""

    sent: list[SentSegment] = field(default_factory=list)
    acknowledged: int | None = None  # the highest number that this direction acknowledged of the other
    _near: int | None = None
    _covered: list[tuple[int, int]] = field(default_factory=list)

    def add(self, segment: MqttSegment) -> SentSegment:
        """Note one segment of this direction."""
        start = segment.sequence if self._near is None else unwrapped(segment.sequence, self._near)
        data_start = start + segment.syn
        data_end = data_start + segment.payload_bytes
        new_bytes = self._cover(data_start, data_end) if segment.payload_bytes else 0
        one = SentSegment(segment, start, data_end + segment.fin, new_bytes)
        self._near = max(one.end, self._near or one.end)
        if one.end > one.start:
            self.sent.append(one)
        return one

    def acknowledge(self, segment: MqttSegment, other: Flow) -> int | None:
        """Note what this segment acknowledges of the other direction; return the number where it is news."""
        if not segment.ack or other._near is None:
            return None
        number = unwrapped(segment.acknowledgement, other._near)
        if self.acknowledged is not None and number <= self.acknowledged:
            return None
        self.acknowledged = number
        return number

    def _cover(self, start: int, end: int) -> int:
        """Add a range to what was captured; return how much of it is new."""
        if not self._covered or start > self._covered[-1][1]:
            self._covered.append((start, end))
            return end - start
        first = max(bisect_right(self._covered, (start, start)) - 1, 0)
        if self._covered[first][1] < start:
            first += 1
        last, old = first, 0
        low, high = start, end
        while last < len(self._covered) and self._covered[last][0] <= end:
            one_start, one_end = self._covered[last]
            old += max(min(one_end, end) - max(one_start, start), 0)
            low, high = min(low, one_start), max(high, one_end)
            last += 1
        self._covered[first:last] = [(low, high)]
        return end - start - old


@dataclass(frozen=True, slots=True)
class Carried:
    """An MQTT packet, and the segments in which it begins and ends."""

    pdu: Pdu
    first: SentSegment
    last: SentSegment
    begins_segment: bool


def carried(sent: Iterable[SentSegment]) -> Iterator[Carried]:
    """Yield the packets of one direction in their order.

    tshark shows packets that waited for a lost segment with the one that came late. Here they are given back
    to the segments that hold them, by their lengths. Inside TLS, which adds to those, they are left where
    tshark shows them, and begin after the last segment in which one ended.
    """
    sent = list(sent)
    data = sorted((one for one in sent if one.new_bytes), key=lambda one: one.end)
    if any(one.segment.tls_types for one in sent):
        yield from _carried_by_tls(sent)
        return
    ends = [one.end - one.segment.fin for one in data]
    begin = min((one.start for one in data), default=0)
    for pdu in (pdu for one in sent for pdu in one.segment.pdus):
        end = begin + pdu.packet_bytes
        last = min(bisect_left(ends, end), len(data) - 1)
        first = min(bisect_right(ends, begin), last)
        yield Carried(pdu, data[first], data[last], data[first].start == begin)
        begin = end


def _carried_by_tls(sent: Iterable[SentSegment]) -> Iterator[Carried]:
    waiting: list[SentSegment] = []
    for one in sent:
        if one.new_bytes:
            waiting.append(one)
        for pdu in one.segment.pdus:
            first = min(waiting, key=lambda part: part.start) if waiting else one
            yield Carried(pdu, first, one, begins_segment=bool(waiting))
            waiting = []
        if any(kind != _APPLICATION_DATA for kind in one.segment.tls_types) and not one.segment.pdus:
            waiting = []


def streams(segments: Iterable[MqttSegment]) -> Iterator[list[MqttSegment]]:
    """Yield the segments of each connection, in the order in which the connections began."""
    found: dict[int, list[MqttSegment]] = {}
    for segment in segments:
        found.setdefault(segment.stream, []).append(segment)
    yield from found.values()
