# SPDX-License-Identifier: Apache-2.0
"""Connections of a capture that others made: which end is the client, and how long answers took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hil.network.dissect.flows import streams
from hil.network.dissect.pdus import Pdu
from hil.network.dissect.segments import Segment

End = tuple[str, int]  # address, port
_BY_CLIENT = {"CONNECT", "SUBSCRIBE", "UNSUBSCRIBE", "PINGREQ"}
_BY_SERVER = {"CONNACK", "SUBACK", "UNSUBACK", "PINGRESP"}


@dataclass(frozen=True)
class Connection:
    """One TCP connection. ``from_start`` says that its handshake is in the capture."""

    stream: int
    client: End
    server: End
    from_start: bool
    segments: Sequence[Segment]


def connections_of(segments: Sequence[Segment], ports: Sequence[int] = ()) -> list[Connection]:
    """Return the connections in the order in which they began; ``ports`` are known to be servers'.

    The client is who sent the SYN; of a connection without one, who sent what only a client sends in MQTT;
    else the end whose port is not among ``ports``, or is the higher one.
    """
    return [_connection(stream, frozenset(ports)) for stream in streams(segments)]


def _connection(stream: Sequence[Segment], ports: frozenset[int]) -> Connection:
    syn = next((one for one in stream if one.syn), None)
    told = next((found for one in stream if (found := _told(one)) is not None), None)
    first = stream[0]
    if syn is not None:
        client_sent, of = not syn.ack, syn
    elif told is not None:
        client_sent, of = told
    else:
        client_sent, of = _by_port(first, ports), first
    source, destination = (of.source, of.source_port), (of.destination, of.destination_port)
    client, server = (source, destination) if client_sent else (destination, source)
    return Connection(first.stream, client, server, syn is not None, stream)


def _told(segment: Segment) -> tuple[bool, Segment] | None:
    for pdu in segment.pdus:
        if pdu.kind in _BY_CLIENT or pdu.kind in _BY_SERVER:
            return pdu.kind in _BY_CLIENT, segment
    return None


def _by_port(segment: Segment, ports: frozenset[int]) -> bool:
    if (segment.source_port in ports) != (segment.destination_port in ports):
        return segment.destination_port in ports
    return segment.source_port > segment.destination_port


@dataclass(frozen=True)
class RoundTrips:
    """How long one side waited for an answer, as the capture saw both pass: behind the capture it is longer.

    ``name`` says what is waited for, ``by_client`` who waits. ``open_count`` of them have no answer here.
    """

    name: str
    by_client: bool
    times_us: tuple[int, ...]
    open_count: int


_ANSWERS: Mapping[str, str] = {
    "CONNECT": "CONNACK",
    "SUBSCRIBE": "SUBACK",
    "UNSUBSCRIBE": "UNSUBACK",
    "PINGREQ": "PINGRESP",
}
_HANDSHAKE = "SYN → SYN-ACK", "SYN-ACK → ACK"
_Asked = tuple[str, bool]  # name of the round trip, by the client
_ORDER = (
    *_HANDSHAKE,
    "CONNECT → CONNACK",
    "SUBSCRIBE → SUBACK",
    "UNSUBSCRIBE → UNSUBACK",
    "PUBLISH → PUBACK",
    "PUBLISH → PUBCOMP",
    "PINGREQ → PINGRESP",
)


def round_trips_of(connections: Sequence[Connection]) -> list[RoundTrips]:
    """Return the round trips of each sort that there is: TCP's handshake, requests, publishes of QoS 1 and 2.

    A packet or SYN that was sent again counts from the first time.
    """
    times: dict[_Asked, list[int]] = {}
    open_: dict[_Asked, int] = {}
    for connection in connections:
        waiting: dict[tuple[_Asked, int], int] = {}
        for asked, key, time_us, is_answer in _moments(connection):
            if not is_answer:
                waiting.setdefault((asked, key), time_us)
            elif (began_us := waiting.pop((asked, key), None)) is not None:
                times.setdefault(asked, []).append(time_us - began_us)
        for asked, _ in waiting:
            open_[asked] = open_.get(asked, 0) + 1
    found = sorted({*times, *open_}, key=lambda asked: (_ORDER.index(asked[0]), not asked[1]))
    return [RoundTrips(*asked, tuple(times.get(asked, ())), open_.get(asked, 0)) for asked in found]


def _moments(connection: Connection) -> Iterator[tuple[_Asked, int, int, bool]]:
    """Yield question or answer: what for, its packet id (0 where it has none), when, and which of both."""
    shaken: set[bool] = set()  # SYN and SYN-ACK, of which only the first ones count
    established = False
    for segment in connection.segments:
        by_client = (segment.source, segment.source_port) == connection.client
        if segment.syn:
            if segment.ack in shaken:
                continue
            shaken.add(segment.ack)
            yield (_HANDSHAKE[0], True), 0, segment.time_us, segment.ack
            if segment.ack:
                yield (_HANDSHAKE[1], False), 0, segment.time_us, False
        elif by_client and segment.ack and not established:
            established = True
            yield (_HANDSHAKE[1], False), 0, segment.time_us, True
        for pdu in segment.pdus:
            yield from (
                (asked, pdu.id, segment.time_us, answers) for asked, answers in _asked(pdu, by_client)
            )


def _asked(pdu: Pdu, by_client: bool) -> Iterator[tuple[_Asked, bool]]:
    if pdu.kind == "PUBLISH" and pdu.qos:
        yield (f"PUBLISH → {'PUBACK' if pdu.qos == 1 else 'PUBCOMP'}", by_client), False
    elif pdu.kind in ("PUBACK", "PUBCOMP"):
        yield (f"PUBLISH → {pdu.kind}", not by_client), True
    for request, answer in _ANSWERS.items():
        if pdu.kind == request:
            yield (f"{request} → {answer}", True), False
        elif pdu.kind == answer:
            yield (f"{request} → {answer}", True), True
