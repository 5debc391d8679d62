"""Attempts to connect, as a capture shows them: how far each came, and how long it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hil.network.dissect.flows import streams
from hil.network.dissect.segments import Segment


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
