# SPDX-License-Identifier: Apache-2.0
"""What really became of each message, without the ledger and the points it watches: seen on the board's own
side of the air, answered by the broker's host, thrown away by the subscriber's own account, refused by the
board's.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dpkt

from hil.network.dissect.segments import MqttPorts, read_segments
from hil.network.dissect.tcp import unwrapped
from hil.network.ledger.points import Owner

NOT_ACCEPTED = (2, 3, 4)  # refused, outbox_full, overrun
ANSWER_US = 50_000  # through the perfect air an answer takes a millisecond
_PUBLISH = 3


@dataclass(frozen=True)
class Truth:
    """Numbers by where they were; ``outcomes`` are the board's, by number. ``reached``: the broker's host had
    the whole message, for it acknowledged the bytes or refused them with a reset. ``at_…``: every byte of it
    was there in some frame, whether or not those before it were."""

    outcomes: Sequence[int]
    transmitted: frozenset[int]
    reached: frozenset[int]
    at_access_point: frozenset[int]
    at_broker: frozenset[int]
    dropped: frozenset[int]
    arrived: frozenset[int]

    def owner_of(self, number: int, takes: Owner | None) -> Owner:
        """Return who lost a message; ``takes`` is who has those that were sent and never reached the host,
        None where the bytes on the way tell."""
        if number in self.arrived:
            return Owner.ARRIVED
        if number in self.dropped:
            return Owner.SUBSCRIBER
        if number in (self.reached if takes else self.at_broker):
            return Owner.BROKER_OUT
        if number in self.transmitted:
            return takes or (Owner.BROKER_IN if number in self.at_access_point else Owner.ACCESS_POINT)
        return Owner.DEVICE_CALL if self.outcomes[number] in NOT_ACCEPTED else Owner.DEVICE_TCP


@dataclass
class Connection:
    """One connection at the board's own interface. Positions count from the first byte, times are in µs."""

    first: int
    sent: list[tuple[int, int, int]] = field(default_factory=list)  # time, from, to
    pieces: dict[int, bytes] = field(default_factory=dict)
    acknowledged: int = 0
    resets_us: list[int] = field(default_factory=list)

    def position(self, sequence: int) -> int:
        return unwrapped(sequence, self.first) - self.first

    def reached(self, end: int) -> bool:
        """Return whether the other host has had the byte before ``end``."""
        if self.acknowledged >= end:
            return True
        return any(
            start < end <= stop and 0 <= reset_us - time_us <= ANSWER_US
            for time_us, start, stop in self.sent
            for reset_us in self.resets_us
        )

    def had(self, start: int, end: int) -> bool:
        """Return whether every byte from ``start`` to before ``end`` was in some segment."""
        for _, first, behind in sorted(self.sent, key=lambda span: span[1]):
            if first <= start < behind:
                start = behind
        return start >= end

    def stream(self) -> bytes:
        """Return what was sent, in order, as far as there is no hole in it."""
        stream = bytearray()
        for at, piece in sorted(self.pieces.items()):
            if at > len(stream):
                break
            stream += piece[max(0, len(stream) - at) :]
        return bytes(stream)


def _segments(capture: Path) -> Iterator[tuple[int, dpkt.tcp.TCP]]:
    """Yield when each TCP segment was captured, and the segment, read without tshark."""
    with capture.open("rb") as file:
        for time_s, frame in dpkt.pcap.UniversalReader(file):
            ip = dpkt.ethernet.Ethernet(frame).data
            if isinstance(ip, dpkt.ip.IP) and isinstance(ip.data, dpkt.tcp.TCP) and not ip.offset:
                yield round(time_s * 1_000_000), ip.data


def connections_in(capture: Path, port: int) -> Mapping[int, Connection]:
    """Return the connections to a port by the board's own port, put together from single segments."""
    found: dict[int, Connection] = {}
    for time_us, tcp in _segments(capture):
        if tcp.dport == port and tcp.flags & dpkt.tcp.TH_SYN:
            known = found.setdefault(tcp.sport, Connection(tcp.seq + 1))
            assert known.first == tcp.seq + 1, f"port {tcp.sport} was used for two connections"
        elif tcp.dport == port and tcp.sport in found and tcp.data:
            own = found[tcp.sport]
            at = own.position(tcp.seq)
            own.sent.append((time_us, at, at + len(tcp.data)))
            own.pieces[at] = max(own.pieces.get(at, b""), bytes(tcp.data), key=len)
        elif tcp.sport == port and tcp.dport in found:
            own = found[tcp.dport]
            if tcp.flags & dpkt.tcp.TH_RST:
                own.resets_us.append(time_us)
            elif tcp.flags & dpkt.tcp.TH_ACK:
                own.acknowledged = max(own.acknowledged, own.position(tcp.ack))
    return found


@dataclass(frozen=True)
class Place:
    """Where a copy of a message is in a connection's bytes."""

    number: int
    board_port: int
    start: int
    end: int


def places_plain(capture: Path, port: int, run: int) -> list[Place]:
    """Return every whole message that the board's interface sent."""
    return [
        Place(number, board_port, start, end)
        for board_port, connection in connections_in(capture, port).items()
        for payload, start, end in _publishes(connection.stream())
        if (number := _number(payload, run)) is not None
    ]


def places_tls(capture: Path, port: int, run: int, key_log: Path) -> list[Place]:
    """Return the same where MQTT is inside TLS, which tshark decrypts; a place is that of a last segment."""
    connections = connections_in(capture, port)
    places = []
    for segment in read_segments(capture, MqttPorts(tls=(port,)), key_log=key_log):
        for pdu in segment.pdus if segment.destination_port == port else ():
            number = _number(pdu.payload, run) if pdu.kind == "PUBLISH" else None
            if number is not None:
                start = connections[segment.source_port].position(segment.sequence)
                places.append(Place(number, segment.source_port, start, start + segment.payload_bytes))
    return places


def numbers_in(path: Path, run: int) -> frozenset[int]:
    """Return the numbers in a file that the subscriber wrote; none where there is no such file."""
    if not path.exists():
        return frozenset()
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return frozenset(int(row["number"]) for row in rows if int(row.get("run", run)) == run)


def reached_from(capture: Path, port: int, places: Iterable[Place]) -> frozenset[int]:
    """Return the numbers of those that the other end of the connection had, by its answers."""
    connections = connections_in(capture, port)
    return frozenset(one.number for one in places if connections[one.board_port].reached(one.end))


def numbers_at(capture: Path, port: int, places: Iterable[Place]) -> frozenset[int]:
    """Return the numbers of those that a capture further on holds every byte of."""
    connections = connections_in(capture, port)
    return frozenset(
        one.number
        for one in places
        if one.board_port in connections and connections[one.board_port].had(one.start, one.end)
    )


def _publishes(stream: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield payload, start and end of the whole PUBLISH packets of an MQTT 3.1.1 byte stream."""
    at = 0
    while at + 2 <= len(stream):
        kind, qos = stream[at] >> 4, stream[at] >> 1 & 3
        length, body = _length(stream, at + 1)
        if length is None or body + length > len(stream):
            return
        if kind == _PUBLISH:
            topic_bytes = int.from_bytes(stream[body : body + 2], "big")
            yield stream[body + 2 + topic_bytes + (2 if qos else 0) : body + length], at, body + length
        at = body + length


def _length(stream: bytes, at: int) -> tuple[int | None, int]:
    """Return the remaining length that begins at ``at``, and where it ends; None where it is cut off."""
    length, shift = 0, 0
    while at < len(stream):
        length |= (stream[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not stream[at - 1] & 0x80:
            return length, at
    return None, at


def _number(payload: bytes, run: int) -> int | None:
    try:
        message = json.loads(payload)
    except ValueError:
        return None
    return int(message["n"]) if isinstance(message, dict) and message.get("run") == run else None
