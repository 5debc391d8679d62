# SPDX-License-Identifier: Apache-2.0
"""What a capture says of one TCP connection, seen in the direction that carries the test's data.

TCP's sequence numbers: 32 bits that begin again at 0 (RFC 9293, 3.4).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from hil.network.dissect.segments import ACK, FIN, RST, SYN
from hil.network.dissect.transport import TcpSegment, read_tcp

SEQUENCE_SPAN = 1 << 32
_HALF = SEQUENCE_SPAN >> 1


def after(one: int, other: int) -> bool:
    """True where sequence number ``one`` lies beyond ``other`` (RFC 1982)."""
    return 0 < (one - other) % SEQUENCE_SPAN < _HALF


def unwrapped(number: int, near: int) -> int:
    """Return the number without wraps that is nearest to ``near``, which has none either."""
    ahead = (number - near) % SEQUENCE_SPAN
    return near + ahead - (SEQUENCE_SPAN if ahead >= _HALF else 0)


UNSCALED = 0


@dataclass(frozen=True)
class TcpFacts:
    """One direction of a connection, ``sender`` to ``receiver``, as it passed the host's interface.

    Bytes are those of data segments, retransmitted ones included; ``header_bytes`` are of IP and TCP.
    ``*_syn_mss_bytes`` is the MSS that a side announced (0: no SYN captured, or none in it). The window is
    what the receiver advertised after its SYN, scaled. ``in_flight_max_bytes`` is the most that was captured
    and not yet acknowledged. ``rtts_us`` are round trips as the host sees them: the handshake, and its own
    data until the board's acknowledgement, leaving out retransmitted segments (Karn). A sender behind the air
    looks different from one on the host: what the air lost on its way to the host was never captured.
    """

    segments_count: int
    payload_bytes: int
    header_bytes: int
    largest_segment_bytes: int
    sender_syn_mss_bytes: int
    receiver_syn_mss_bytes: int
    window_max_bytes: int
    window_min_bytes: int
    in_flight_max_bytes: int
    retransmissions_count: int
    out_of_order_count: int
    rtts_us: tuple[int, ...]

    @property
    def rtt_p50_us(self) -> int:
        """The median round trip, 0 where none was seen."""
        return round(statistics.median(self.rtts_us)) if self.rtts_us else 0


def read_facts(path: Path, *, port: int, sender: str, host: str) -> TcpFacts | None:
    """Return the facts of the connection on ``port`` that carried most from ``sender``, None where none did.

    ``port`` is the server's, ``sender`` and ``host`` are IPv4 addresses. Raises RigError: not a capture.
    """
    connections: dict[tuple[tuple[str, int], ...], _Connection] = {}
    for segment in read_tcp(path):
        if port not in (segment.source_port, segment.destination_port):
            continue
        ends = [(segment.source, segment.source_port), (segment.destination, segment.destination_port)]
        key = tuple(sorted(ends))
        connection = connections.get(key)
        if connection is None:
            connection = connections[key] = _Connection(sender, host)
        connection.add(segment)
    busiest = max(connections.values(), key=lambda one: one.payload_bytes, default=None)
    return busiest.facts() if busiest is not None and busiest.segments_count else None


@dataclass
class _End:
    """One side of a connection: what it announced in its SYN, and the windows it advertised."""

    mss_bytes: int = 0
    scale: int | None = None
    windows: set[int] = field(default_factory=set)
    acknowledged: int | None = None


class _Connection:
    """Adds up one connection, segment by segment. Sequence numbers are as they came."""

    def __init__(self, sender: str, host: str) -> None:
        self.sender = sender
        self.segments_count = 0
        self.payload_bytes = 0
        self._header_bytes = 0
        self._largest_bytes = 0
        self._in_flight_max_bytes = 0
        self._retransmissions = 0
        self._out_of_order = 0
        self._ends = {True: _End(), False: _End()}
        self._next: int | None = None
        self._gaps: list[tuple[int, int, int]] = []
        self._rtt = _RoundTrips(host)

    def add(self, segment: TcpSegment) -> None:
        forward = segment.source == self.sender
        self._note_end(segment, self._ends[forward])
        self._rtt.add(segment)
        if forward and segment.payload_bytes > 0:
            self._add_data(segment, segment.sequence)

    def facts(self) -> TcpFacts:
        sender, receiver = self._ends[True], self._ends[False]
        scale = (receiver.scale or UNSCALED) if sender.scale is not None else UNSCALED
        windows = [window << scale for window in receiver.windows]
        return TcpFacts(
            segments_count=self.segments_count,
            payload_bytes=self.payload_bytes,
            header_bytes=self._header_bytes,
            largest_segment_bytes=self._largest_bytes,
            sender_syn_mss_bytes=sender.mss_bytes,
            receiver_syn_mss_bytes=receiver.mss_bytes,
            window_max_bytes=max(windows, default=0),
            window_min_bytes=min(windows, default=0),
            in_flight_max_bytes=self._in_flight_max_bytes,
            retransmissions_count=self._retransmissions,
            out_of_order_count=self._out_of_order,
            rtts_us=self._rtt.values_us(),
        )

    def _note_end(self, segment: TcpSegment, end: _End) -> None:
        if segment.flags & SYN:
            end.mss_bytes = segment.mss_bytes or end.mss_bytes
            end.scale = end.scale if segment.window_shift is None else segment.window_shift
        elif not segment.flags & (RST | FIN):
            end.windows.add(segment.window)
        acknowledgement = segment.acknowledgement
        if segment.flags & ACK and (end.acknowledged is None or after(acknowledgement, end.acknowledged)):
            end.acknowledged = acknowledgement

    def _add_data(self, segment: TcpSegment, start: int) -> None:
        self.segments_count += 1
        self.payload_bytes += segment.payload_bytes
        self._header_bytes += segment.header_bytes
        self._largest_bytes = max(self._largest_bytes, segment.payload_bytes)
        end = (start + segment.payload_bytes) % SEQUENCE_SPAN
        if self._next is None or not after(self._next, start):
            self._add_new(start, end, segment.time_us)
        else:
            self._add_old(start, end, segment.time_us)
        acknowledged = self._ends[False].acknowledged
        if self._next is not None and acknowledged is not None and after(self._next, acknowledged):
            in_flight = (self._next - acknowledged) % SEQUENCE_SPAN
            self._in_flight_max_bytes = max(self._in_flight_max_bytes, in_flight)

    def _add_new(self, start: int, end: int, time_us: int) -> None:
        if self._next is not None and start != self._next:
            self._gaps.append((self._next, start, time_us))
        self._next = end

    def _add_old(self, start: int, end: int, time_us: int) -> None:
        """A segment that begins before what was captured last: sent again, or late on its way to the host."""
        for index, (gap_start, gap_end, since_us) in enumerate(self._gaps):
            if after(end, gap_start) and after(gap_end, start):
                late_us = time_us - since_us
                self._gaps[index : index + 1] = _remaining(gap_start, gap_end, start, end, since_us)
                # what was lost on its way comes again after a round trip at the earliest
                if late_us < self._rtt.handshake_us // 2:
                    self._out_of_order += 1
                    return
                break
        self._retransmissions += 1
        if self._next is not None and after(end, self._next):
            self._next = end


class _RoundTrips:
    """Round trips between the host's segments and their acknowledgements, one at a time (RFC 6298, Karn)."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._values: list[int] = []
        self._timed: tuple[int, int] | None = None
        self._sent: int | None = None
        self.handshake_us = 0

    def add(self, segment: TcpSegment) -> None:
        if segment.source == self._host:
            self._add_sent(segment)
        elif self._timed is not None and segment.flags & ACK:
            expected, sent_us = self._timed
            if not after(expected, segment.acknowledgement):
                self._values.append(segment.time_us - sent_us)
                self.handshake_us = self.handshake_us or self._values[0]
                self._timed = None

    def values_us(self) -> tuple[int, ...]:
        return tuple(self._values)

    def _add_sent(self, segment: TcpSegment) -> None:
        length = segment.payload_bytes + (1 if segment.flags & SYN else 0)
        if not length:
            return
        end = (segment.sequence + length) % SEQUENCE_SPAN
        if self._sent is not None and not after(end, self._sent):
            self._timed = None  # sent again: its acknowledgement is ambiguous
            return
        self._sent = end
        if self._timed is None:
            self._timed = (end, segment.time_us)


def _remaining(
    gap_start: int, gap_end: int, start: int, end: int, since_us: int
) -> Iterable[tuple[int, int, int]]:
    """Return what is left of a gap after a segment has filled a part of it."""
    if after(start, gap_start):
        yield gap_start, start, since_us
    if after(gap_end, end):
        yield end, gap_end, since_us
