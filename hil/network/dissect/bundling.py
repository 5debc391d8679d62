# SPDX-License-Identifier: Apache-2.0
"""How many MQTT packets share a TCP segment: Nagle's algorithm and delayed acknowledgements made visible."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hil.network.dissect.flows import Flow, SentSegment, carried, streams
from hil.network.dissect.segments import MqttSegment


@dataclass(frozen=True)
class Bundling:
    """One direction of the connections to and from ``sender``. Counts of segments that hold such packets, and
    the most in one; ``ack_delays_us`` are from a data segment to the first segment that acknowledges it,
    ``first_segments_bytes`` the payloads of the first segments of each message that needs several,
    ``segment_max_bytes`` the largest payload of any segment.

    A packet of several segments counts with the one that it ends in. Segments that were sent again have no
    delay of an acknowledgement, for nobody can say which of them it is for (Karn). A message that begins in
    the midst of a segment has no first segment of its own.
    """

    publishes_count: int
    publish_segments_count: int
    publishes_per_segment_max: int
    pubrels_per_segment_max: int
    pubcomps_per_segment_max: int
    ack_delays_us: tuple[int, ...]
    first_segments_bytes: tuple[int, ...]
    segment_max_bytes: int = 0

    def facts(self, prefix: str) -> Mapping[str, int | None]:
        """Return the record's facts, each key beginning with ``prefix``."""
        delays, first = self.ack_delays_us, self.first_segments_bytes
        return {
            f"{prefix}publishes_count": self.publishes_count,
            f"{prefix}publish_segments_count": self.publish_segments_count,
            f"{prefix}publishes_per_segment_max": self.publishes_per_segment_max,
            f"{prefix}pubrels_per_segment_max": self.pubrels_per_segment_max,
            f"{prefix}pubcomps_per_segment_max": self.pubcomps_per_segment_max,
            f"{prefix}ack_delay_p50_us": round(statistics.median(delays)) if delays else None,
            f"{prefix}ack_delay_max_us": max(delays, default=None),
            f"{prefix}first_segment_p50_bytes": round(statistics.median(first)) if first else None,
            f"{prefix}segment_max_bytes": self.segment_max_bytes,
        }


def bundling_of(segments: Sequence[MqttSegment], *, sender: str, ports: Sequence[int] = ()) -> Bundling:
    """Look at what ``sender`` (an IPv4 address) sent; with ``ports``, on connections of these broker ports.

    Where sender and receiver share an address, its side is the one whose source port is in ``ports``.
    """
    side = _Side(sender, frozenset(ports))
    return _added_up([_Direction(stream, side) for stream in streams(segments)])


def _added_up(directions: Sequence[_Direction]) -> Bundling:
    publishes = [count for one in directions for count in one.counts["PUBLISH"].values()]
    return Bundling(
        publishes_count=sum(publishes),
        publish_segments_count=len(publishes),
        publishes_per_segment_max=max(publishes, default=0),
        pubrels_per_segment_max=max((one.most("PUBREL") for one in directions), default=0),
        pubcomps_per_segment_max=max((one.most("PUBCOMP") for one in directions), default=0),
        ack_delays_us=tuple(delay for one in directions for delay in one.ack_delays_us),
        first_segments_bytes=tuple(size for one in directions for size in one.first_segments_bytes),
        segment_max_bytes=max((one.segment_max_bytes for one in directions), default=0),
    )


@dataclass(frozen=True)
class _Side:
    """The sender of segments: its address and ports."""

    address: str
    ports: frozenset[int]

    def concerns(self, segment: MqttSegment) -> bool:
        ends = {segment.source_port, segment.destination_port}
        return self.address in (segment.source, segment.destination) and (
            not self.ports or not self.ports.isdisjoint(ends)
        )

    def sent(self, segment: MqttSegment) -> bool:
        if segment.source != self.address or not self.concerns(segment):
            return False
        return segment.destination != self.address or segment.source_port in self.ports


@dataclass
class _Direction:
    """The sender's direction of one connection."""

    stream: Sequence[MqttSegment]
    side: _Side
    counts: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    ack_delays_us: list[int] = field(default_factory=list)
    first_segments_bytes: list[int] = field(default_factory=list)
    segment_max_bytes: int = 0

    def __post_init__(self) -> None:
        ours, theirs = Flow(), Flow()
        waiting: list[SentSegment] = []
        for segment in self.stream:
            if not self.side.concerns(segment):
                continue
            if self.side.sent(segment):
                waiting = self._sent(ours.add(segment), waiting)
                continue
            theirs.add(segment)
            news = theirs.acknowledge(segment, ours)
            if news is not None:
                done = [one for one in waiting if one.end <= news]
                self.ack_delays_us += [segment.time_us - one.segment.time_us for one in done]
                waiting = [one for one in waiting if one.end > news]
        self.segment_max_bytes = max((one.segment.payload_bytes for one in ours.sent), default=0)
        for packet in carried(ours.sent):
            self.counts[packet.pdu.kind][packet.last.segment.number] += 1
            if packet.first is not packet.last and packet.begins_segment:
                self.first_segments_bytes.append(packet.first.segment.payload_bytes)

    def most(self, kind: str) -> int:
        return max(self.counts[kind].values(), default=0)

    @staticmethod
    def _sent(one: SentSegment, waiting: list[SentSegment]) -> list[SentSegment]:
        if one.new_bytes:
            waiting.append(one)
            return waiting
        return [other for other in waiting if other.end <= one.start or other.start >= one.end]
