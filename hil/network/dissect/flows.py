# SPDX-License-Identifier: Apache-2.0
"""One direction of a connection: its data in stream order, and what of it was sent again.

Attempts to connect, as a capture shows them: how far each came, and how long it took.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hil.network.dissect.segments import Pdu, Segment
from hil.network.dissect.tcp import unwrapped

_APPLICATION_DATA = 23  # TLS content type (RFC 8446, 5.1)


@dataclass(frozen=True, slots=True)
class Sent:
    """A segment that takes up sequence numbers: data, SYN or FIN.

    ``start`` and ``end`` do not wrap; ``new_bytes`` of its payload were not captured before.
    """

    segment: Segment
    start: int
    end: int
    new_bytes: int


@dataclass
class Flow:
    """One direction of a connection, segment by segment as captured."""

    sent: list[Sent] = field(default_factory=list)
    acknowledged: int | None = None  # the highest number that this direction acknowledged of the other
    _near: int | None = None
    _covered: list[tuple[int, int]] = field(default_factory=list)

    def add(self, segment: Segment) -> Sent:
        """Note one segment of this direction."""
        start = segment.sequence if self._near is None else unwrapped(segment.sequence, self._near)
        data_start = start + segment.syn
        data_end = data_start + segment.payload_bytes
        new_bytes = self._cover(data_start, data_end) if segment.payload_bytes else 0
        one = Sent(segment, start, data_end + segment.fin, new_bytes)
        self._near = max(one.end, self._near or one.end)
        if one.end > one.start:
            self.sent.append(one)
        return one

    def acknowledge(self, segment: Segment, other: Flow) -> int | None:
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
    first: Sent
    last: Sent
    begins_segment: bool


def carried(sent: Iterable[Sent]) -> Iterator[Carried]:
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


def _carried_by_tls(sent: Iterable[Sent]) -> Iterator[Carried]:
    waiting: list[Sent] = []
    for one in sent:
        if one.new_bytes:
            waiting.append(one)
        for pdu in one.segment.pdus:
            first = min(waiting, key=lambda part: part.start) if waiting else one
            yield Carried(pdu, first, one, begins_segment=bool(waiting))
            waiting = []
        if any(kind != _APPLICATION_DATA for kind in one.segment.tls_types) and not one.segment.pdus:
            waiting = []


def streams(segments: Iterable[Segment]) -> Iterator[list[Segment]]:
    """Yield the segments of each connection, in the order in which the connections began."""
    found: dict[int, list[Segment]] = {}
    for segment in segments:
        found.setdefault(segment.stream, []).append(segment)
    yield from found.values()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One TCP connection that a client tried to open. Times are the capturing host's wall clock (µs), None
    for what was not captured.

    ``syns_count`` and ``connects_count`` are how often each was seen, repeated ones too; ``connect_us`` is
    the first CONNECT as a whole. ``tls_us`` is the first TLS record. ``ended_us`` is the first FIN or RST of
    either side, ``reset`` whether it was an RST, ``ended_by_client`` whose it was.
    """

    stream: int
    client: str
    client_port: int
    broker_port: int
    syn_us: int
    last_syn_us: int
    syns_count: int
    syn_acks_count: int
    established_us: int | None
    tls_us: int | None
    connect_us: int | None
    connects_count: int
    connack_us: int | None
    ended_us: int | None
    reset: bool
    ended_by_client: bool

    @property
    def tcp_took_us(self) -> int | None:
        """From the first SYN to the client's ACK of the SYN-ACK."""
        return None if self.established_us is None else self.established_us - self.syn_us

    @property
    def mqtt_took_us(self) -> int | None:
        """From CONNECT to CONNACK."""
        if self.connect_us is None or self.connack_us is None:
            return None
        return self.connack_us - self.connect_us

    @property
    def took_us(self) -> int | None:
        """From the first SYN to CONNACK."""
        return None if self.connack_us is None else self.connack_us - self.syn_us


def attempts_of(segments: Sequence[Segment], *, client: str, ports: Sequence[int] = ()) -> list[Attempt]:
    """Return the attempts of ``client`` (an IPv4 address) in their order; ``ports`` are the broker's.

    A connection whose SYN was not captured is no attempt.
    """
    found = []
    for stream in streams(segments):
        syn = next((one for one in stream if one.syn and not one.ack), None)
        if syn is not None and syn.source == client and (not ports or syn.destination_port in ports):
            found.append(_attempt(stream, syn))
    return found


def _attempt(stream: Sequence[Segment], syn: Segment) -> Attempt:
    own = [one for one in stream if one.source_port == syn.source_port and one.source == syn.source]
    syns = [one for one in own if one.syn and not one.ack]
    syn_acks = [one for one in stream if one.syn and one.ack]
    # any later segment of the client's acknowledges it: the ACK itself may be lost before the capture
    opened = [one for one in own if one.ack and not one.syn and syn_acks and one.number > syn_acks[0].number]
    ends = [one for one in stream if one.fin or one.rst]
    connects = _times_us(stream, "CONNECT")
    return Attempt(
        stream=syn.stream,
        client=syn.source,
        client_port=syn.source_port,
        broker_port=syn.destination_port,
        syn_us=syn.time_us,
        last_syn_us=syns[-1].time_us,
        syns_count=len(syns),
        syn_acks_count=len(syn_acks),
        established_us=_first_us(opened),
        tls_us=_first_us([one for one in stream if one.tls_types]),
        connect_us=connects[0] if connects else None,
        connects_count=_repeated(own, connects),
        connack_us=next(iter(_times_us(stream, "CONNACK")), None),
        ended_us=_first_us(ends),
        reset=bool(ends) and ends[0].rst,
        ended_by_client=bool(ends) and ends[0] in own,
    )


def _times_us(stream: Sequence[Segment], kind: str) -> list[int]:
    return [one.time_us for one in stream for pdu in one.pdus if pdu.kind == kind]


def _first_us(segments: Sequence[Segment]) -> int | None:
    return segments[0].time_us if segments else None


def _repeated(own: Sequence[Segment], connects: Sequence[int]) -> int:
    """Count the segments that carry the CONNECT: the one that was dissected, and those with its number."""
    if not connects:
        return 0
    first = next(one for one in own if any(pdu.kind == "CONNECT" for pdu in one.pdus))
    return sum(1 for one in own if one.sequence == first.sequence and one.payload_bytes)
