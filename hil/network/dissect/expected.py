"""What isolated messages must cost on the wire, by formula: to set beside what a capture says."""

from __future__ import annotations

from collections import Counter

from hil.network.dissect.overhead import COUNTS, PARTS, Overhead
from hil.network.dissect.pdus import length_field_bytes

ETHERNET_BYTES, IP_BYTES, TCP_BYTES = 14, 20, 20
TIMESTAMPS_BYTES = 12  # the TCP option, padded
LINUX_SYN_OPTIONS_BYTES = {True: 20, False: 12}  # MSS, SACK, window scale; with timestamps or without
LWIP_SYN_OPTIONS_BYTES = 4  # MSS
FIN_FRAMES = 3  # FIN, the other side's FIN that acknowledges it, its ACK
ETHERNET_MTU = 1500
_ID_BYTES = 2
_ACKNOWLEDGEMENT_BYTES = 4  # PUBACK, PUBREC, PUBREL, PUBCOMP, and CONNACK (MQTT 3.1.1)
_DISCONNECT_BYTES = 2
_CONNECT_BYTES = 14  # fixed header, protocol name, level, flags, keep alive, length of the client id
_ANSWERS = {0: (), 1: ("puback",), 2: ("pubrec", "pubrel", "pubcomp")}


def expected_overhead(
    *,
    qos: int,
    payload_bytes: int,
    topic: str,
    client_id: str,
    count: int = 1,
    timestamps: bool = True,
    syn_options_bytes: int | None = None,
    mss_bytes: int | None = None,
    write_bytes: int = 0,
    record_bytes: int = 0,
    partial_acks: int = 0,
    connection_acks: int = 2,
    fin_frames: int = FIN_FRAMES,
) -> Overhead:
    """Return the cost of one connection: handshake, CONNECT, ``count`` publishes, DISCONNECT and FIN.

    Isolated means: nothing is lost, and each message is acknowledged before the next is sent. Then a QoS 0
    PUBLISH costs an ACK alone; PUBACK and PUBREC carry the ACK of a PUBLISH of one segment, and the last
    packet of QoS 1 and 2 costs an ACK alone.

    What no formula says is up to a receiver's TCP: ``partial_acks`` is how many ACKs alone there are besides,
    of the parts of a PUBLISH of several segments, or where an answer came later than TCP waits for it;
    ``connection_acks`` is 2, of CONNECT and CONNACK, and 3 where DISCONNECT gets one of its own.

    ``mss_bytes`` is what a segment carries (else what fits 1500 bytes of IP), ``write_bytes`` the sender's
    buffer where it writes a packet in pieces, each its own segments (0: in one piece). ``record_bytes`` is
    what TLS adds to a record, one a write; TLS's handshake and the count ``piggybacked_ack`` are not
    foretold. CONNECT has neither will nor login.
    """
    options_bytes = TIMESTAMPS_BYTES if timestamps else 0
    header_bytes = ETHERNET_BYTES + IP_BYTES + TCP_BYTES + options_bytes
    syn_bytes = ETHERNET_BYTES + IP_BYTES + TCP_BYTES
    syn_bytes += LINUX_SYN_OPTIONS_BYTES[timestamps] if syn_options_bytes is None else syn_options_bytes
    room_bytes = mss_bytes or ETHERNET_MTU - IP_BYTES - TCP_BYTES - options_bytes
    answers = _ANSWERS[qos]
    variable_bytes = 2 + len(topic.encode()) + (_ID_BYTES if qos else 0)
    publish_header = 1 + length_field_bytes(variable_bytes + payload_bytes) + variable_bytes
    pieces = _pieces(publish_header + payload_bytes, write_bytes)
    segments = sum(-(-(piece + record_bytes) // room_bytes) for piece in pieces)
    frames = count * (segments + len(answers))
    acks = count + partial_acks
    parts = Counter(
        handshake=2 * syn_bytes + header_bytes,
        connect=header_bytes + _CONNECT_BYTES + len(client_id.encode()),
        connack=header_bytes + _ACKNOWLEDGEMENT_BYTES,
        connection_ack=connection_acks * header_bytes,
        disconnect=header_bytes + _DISCONNECT_BYTES,
        fin=fin_frames * header_bytes,
        ethernet=frames * ETHERNET_BYTES,
        ip=frames * IP_BYTES,
        tcp=frames * TCP_BYTES,
        tcp_options=frames * options_bytes,
        tls_record=(count * (len(pieces) + len(answers)) + 3) * record_bytes,
        publish_payload=count * payload_bytes,
        publish_header=count * publish_header,
        tcp_ack_only=acks * header_bytes,
        **dict.fromkeys(answers, count * _ACKNOWLEDGEMENT_BYTES),
    )
    counts = Counter(
        connections=1,
        frames=3 + 3 + connection_acks + fin_frames + frames + acks,
        message_frames=frames,
        handshake=3,
        connection_ack=connection_acks,
        fin=fin_frames,
        tcp_ack_only=acks,
        connect=1,
        connack=1,
        disconnect=1,
        publish=count,
        **dict.fromkeys(answers, count),
    )
    return Overhead({name: parts[name] for name in PARTS}, {name: counts[name] for name in COUNTS})


def _pieces(packet_bytes: int, write_bytes: int) -> list[int]:
    if not write_bytes:
        return [packet_bytes]
    whole, rest = divmod(packet_bytes, write_bytes)
    return [write_bytes] * whole + ([rest] if rest else [])
