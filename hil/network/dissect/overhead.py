# SPDX-License-Identifier: Apache-2.0
"""What a message costs on the wire besides its payload, byte by byte, from a capture."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hil.network.dissect.flows import Flow, SentSegment, streams
from hil.network.dissect.pdus import Pdu
from hil.network.dissect.segments import MqttSegment

# Frames as a whole, headers and all.
CONNECTION_PARTS = (
    "handshake",  # SYN, SYN-ACK and the ACK of that
    "tls_handshake",  # its records, and the ACKs that carry nothing else
    "connect",
    "connack",
    "subscribe",
    "suback",
    "disconnect",
    "ping",
    "connection_ack",  # ACKs alone, of the seven before
    "fin",  # TLS's alerts too
    "rst",
)
# Frames with at least one message packet, layer by layer; MQTT packets by type.
MESSAGE_PARTS = (
    "ethernet",
    "ip",
    "tcp",
    "tcp_options",
    "tls_record",
    "publish_payload",
    "publish_header",
    "puback",
    "pubrec",
    "pubrel",
    "pubcomp",
    "tcp_ack_only",  # ACKs alone, of messages, duplicates among them
)
# What went wrong, was only asked, or cannot be read.
OTHER_PARTS = ("retransmitted", "tcp_probe", "undissected")
PARTS = (*CONNECTION_PARTS, *MESSAGE_PARTS, *OTHER_PARTS)

_MESSAGES = "messages"
_KIND_PARTS = {
    "CONNECT": "connect",
    "AUTH": "connect",
    "CONNACK": "connack",
    "SUBSCRIBE": "subscribe",
    "UNSUBSCRIBE": "subscribe",
    "SUBACK": "suback",
    "UNSUBACK": "suback",
    "DISCONNECT": "disconnect",
    "PINGREQ": "ping",
    "PINGRESP": "ping",
    "PUBACK": "puback",
    "PUBREC": "pubrec",
    "PUBREL": "pubrel",
    "PUBCOMP": "pubcomp",
}
_MESSAGE_KINDS = {"PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP"}
_ALERT, _HANDSHAKE_TYPES = 21, {20, 22}  # TLS content types (RFC 8446, 5.1)
_REPEATED = {"retransmitted", "tcp_probe"}
_ACK_PARTS = {
    "handshake": "handshake",
    "tls_handshake": "tls_handshake",
    "fin": "fin",
    "undissected": "tcp_ack_only",
    _MESSAGES: "tcp_ack_only",
}
_PROBES = {"keep_alive", "keep_alive_ack", "zero_window_probe", "zero_window_probe_ack"}


@dataclass(frozen=True)
class Overhead:
    """Bytes of the connections of one board, both directions, by what they are for. A connection's own cost
    (handshake, TLS, CONNECT and CONNACK, SUBSCRIBE, DISCONNECT, FIN) is apart from that of the messages.

    ``parts`` has a number for each of PARTS; every frame's bytes are in exactly one of them, so their sum is
    what was captured. ``counts``: MQTT packets by kind, frames of the parts that are whole frames,
    connections, all frames, ``message_frames``, and ``piggybacked_ack``: frames that carry data and
    acknowledge some.
    """

    parts: Mapping[str, int]
    counts: Mapping[str, int]

    def facts(self) -> Mapping[str, int]:
        """Return ``overhead_<part>_bytes`` and ``_count`` for the record."""
        sizes = {f"overhead_{name}_bytes": size for name, size in self.parts.items()}
        return {**sizes, **{f"overhead_{name}_count": count for name, count in self.counts.items()}}


COUNTS = (
    *("connections", "frames", "message_frames", "piggybacked_ack"),
    *("handshake", "tls_handshake", "connection_ack", "fin", "rst", "tcp_ack_only"),
    *("connect", "connack", "subscribe", "suback", "disconnect", "ping"),
    *("publish", "puback", "pubrec", "pubrel", "pubcomp"),
    *("retransmitted", "tcp_probe", "undissected"),
)


def overhead_of(segments: Sequence[MqttSegment], *, board: str) -> Overhead:
    """Add up the connections of ``board`` (an IP address)."""
    parts: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for stream in streams(one for one in segments if board in (one.source, one.destination)):
        counts["connections"] += 1
        _Stream(stream, parts, counts).add_up()
    return Overhead({name: parts[name] for name in PARTS}, {name: counts[name] for name in COUNTS})


class _Stream:
    """Adds up one connection. First each segment that takes up sequence numbers gets an owner, then the
    acknowledgements do, by what they acknowledge."""

    def __init__(self, segments: Sequence[MqttSegment], parts: Counter[str], counts: Counter[str]) -> None:
        self._segments = segments
        self._end = (segments[0].source, segments[0].source_port)  # either of the two
        self._parts = parts
        self._counts = counts
        self._secured = any(one.tls_types for one in segments)

    def add_up(self) -> None:
        flows = {True: Flow(), False: Flow()}
        seen = []
        for segment in self._segments:
            up = (segment.source, segment.source_port) == self._end
            seen.append((up, flows[up].add(segment), flows[up].acknowledge(segment, flows[not up])))
        owners = {up: _owners(flow.sent) for up, flow in flows.items()}
        ends = {up: _Ends(flow.sent, owners[up]) for up, flow in flows.items()}
        unread_bytes = 0
        for up, sent, news in seen:
            segment = sent.segment
            self._counts["frames"] += 1
            for pdu in segment.pdus:
                self._add_pdu(pdu)
                unread_bytes -= pdu.packet_bytes
            if sent.end > sent.start:
                self._counts["piggybacked_ack"] += news is not None and segment.payload_bytes > 0
                unread_bytes += self._add_sent(sent, owners[up][segment.number])
            else:
                self._add_bare(segment, ends[not up].owner(news))
        # what is neither MQTT nor a frame of its own: TLS's records round it, or packets that never ended
        self._parts["tls_record" if self._secured else "undissected"] += unread_bytes

    def _add_pdu(self, pdu: Pdu) -> None:
        if pdu.kind == "PUBLISH":
            self._counts["publish"] += 1
            self._parts["publish_payload"] += len(pdu.payload)
            self._parts["publish_header"] += pdu.packet_bytes - len(pdu.payload)
        else:
            part = _KIND_PARTS[pdu.kind]
            self._counts[part] += 1
            self._parts[part] += pdu.packet_bytes

    def _add_sent(self, sent: SentSegment, owner: str) -> int:
        """Add the frame's headers; return the bytes of payload that are MQTT, or TLS round it."""
        segment = sent.segment
        if owner in _REPEATED:
            self._add_frame(owner, segment)
            return 0
        self._parts["retransmitted"] += segment.payload_bytes - sent.new_bytes
        if owner == _MESSAGES:
            self._counts["message_frames"] += 1
            self._add_layers(segment)
            return sent.new_bytes
        self._parts[owner] += segment.frame_bytes - segment.payload_bytes
        if owner in _KIND_PARTS.values():
            return sent.new_bytes
        self._parts[owner] += sent.new_bytes
        self._counts[owner] += 1
        return 0

    def _add_frame(self, part: str, segment: MqttSegment) -> None:
        self._parts[part] += segment.frame_bytes
        self._counts[part] += 1

    def _add_layers(self, segment: MqttSegment) -> None:
        headers = segment.ip_bytes + segment.tcp_bytes
        # the padding of a short frame is Ethernet's
        self._parts["ethernet"] += segment.frame_bytes - headers - segment.payload_bytes
        self._parts["ip"] += segment.ip_bytes
        self._parts["tcp"] += segment.tcp_bytes - segment.options_bytes
        self._parts["tcp_options"] += segment.options_bytes

    def _add_bare(self, segment: MqttSegment, acknowledged: str) -> None:
        """Add a segment that takes up no sequence number: RST, or an ACK alone."""
        if segment.rst:
            self._add_frame("rst", segment)
        elif not segment.analysis.isdisjoint(_PROBES):
            self._add_frame("tcp_probe", segment)
        else:
            self._add_frame(_ACK_PARTS.get(acknowledged, "connection_ack"), segment)


class _Ends:
    """Where the segments of one direction end, and their owners: what an acknowledgement is for."""

    def __init__(self, sent: Sequence[SentSegment], owners: Mapping[int, str]) -> None:
        known = sorted(
            (one.end, index, owners[one.segment.number])
            for index, one in enumerate(sent)
            if owners[one.segment.number] not in _REPEATED
        )
        self._ends = [end for end, _, _ in known]
        self._owners = [owner for _, _, owner in known]

    def owner(self, acknowledged: int | None) -> str:
        """Return the owner of the last segment up to this ACK; a duplicate ACK (None) is the messages'."""
        reached = bisect_right(self._ends, acknowledged) if acknowledged is not None else 0
        return self._owners[reached - 1] if reached else _MESSAGES


def _owners(sent: Sequence[SentSegment]) -> dict[int, str]:
    """Return each segment's owner by its number; data without a packet's end counts for the next packet."""
    owners: dict[int, str] = {}
    following = "undissected"
    for one in reversed(sent):
        own = _owner(one)
        owners[one.segment.number] = own or following
        if own is not None and (own in (_MESSAGES, "tls_handshake") or own in _KIND_PARTS.values()):
            following = own
    return owners


def _owner(sent: SentSegment) -> str | None:
    segment = sent.segment
    if segment.pdus:
        kinds = {pdu.kind for pdu in segment.pdus}
        return _KIND_PARTS[segment.pdus[0].kind] if kinds.isdisjoint(_MESSAGE_KINDS) else _MESSAGES
    if segment.unreadable:
        return "undissected"
    if segment.rst or segment.syn:
        return "rst" if segment.rst else "handshake"
    if segment.payload_bytes and not sent.new_bytes:
        return "retransmitted" if segment.analysis.isdisjoint(_PROBES) else "tcp_probe"
    if not segment.payload_bytes:
        return "fin"
    if not _HANDSHAKE_TYPES.isdisjoint(segment.tls_types):
        return "tls_handshake"
    return "fin" if _ALERT in segment.tls_types else None
