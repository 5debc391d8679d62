# SPDX-License-Identifier: Apache-2.0
"""TCP segments and UDP datagrams of a capture by themselves, nothing put together: what iperf's figures need.

tshark's own analysis of sequence numbers is off, which saves time: hil.network.dissect.tcp has one that knows
which end is the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hil.network.dissect.tshark import Row, read_fields

_OPTIONS = tuple(
    word
    for preference in (
        "ip.defragment:FALSE",
        "tcp.analyze_sequence_numbers:FALSE",
        "tcp.desegment_tcp_streams:FALSE",
    )
    for word in ("-o", preference)
)
_TIME_AND_ENDS = ("frame.time_epoch", "ip.src", "ip.dst", "ip.hdr_len")
_TCP = (
    "tcp.srcport", "tcp.dstport", "tcp.hdr_len", "tcp.len", "tcp.seq_raw", "tcp.ack_raw", "tcp.flags",
    "tcp.window_size_value", "tcp.options.mss_val", "tcp.options.wscale.shift",
)  # fmt: skip
_UDP = ("udp.srcport", "udp.dstport", "udp.length", "udp.payload")
_UDP_HEADER_BYTES = 8


@dataclass(frozen=True, slots=True)
class TcpSegment:
    """``time_us`` is the host's wall clock. ``header_bytes`` are those of IP and TCP, options included.

    ``mss_bytes`` and ``window_shift`` are options of a SYN; 0 and None where it has none.
    """

    time_us: int
    source: str
    source_port: int
    destination: str
    destination_port: int
    header_bytes: int
    payload_bytes: int
    sequence: int
    acknowledgement: int
    flags: int
    window: int
    mss_bytes: int
    window_shift: int | None


@dataclass(frozen=True, slots=True)
class UdpDatagram:
    """``payload`` holds what the snap length left of its ``payload_bytes``."""

    time_us: int
    source: str
    source_port: int
    destination: str
    destination_port: int
    payload_bytes: int
    payload: bytes


def read_tcp(path: Path) -> Iterator[TcpSegment]:
    """Yield the TCP segments of a capture in the order captured. Raises RigError: not a capture."""
    for row in read_fields(path, (*_TIME_AND_ENDS, *_TCP), _OPTIONS, "ip && tcp && !icmp"):
        yield _segment(row)


def read_udp(path: Path) -> Iterator[UdpDatagram]:
    """Yield the UDP datagrams of a capture (first fragments only). Raises RigError: not a capture."""
    for row in read_fields(path, (*_TIME_AND_ENDS, *_UDP), _OPTIONS, "ip && udp && !icmp"):
        yield _datagram(row)


def _segment(row: Row) -> TcpSegment:
    time, source, destination, ip_bytes, *own = row
    source_port, destination_port, tcp_bytes, payload_bytes, sequence, acknowledgement = map(int, own[:6])
    flags, window, mss, shift = own[6:]
    return TcpSegment(
        time_us=_time_us(time),
        source=source.decode(),
        source_port=source_port,
        destination=destination.decode(),
        destination_port=destination_port,
        header_bytes=int(ip_bytes) + tcp_bytes,
        payload_bytes=payload_bytes,
        sequence=sequence,
        acknowledgement=acknowledgement,
        flags=int(flags, 16),
        window=int(window),
        mss_bytes=int(mss or 0),
        window_shift=int(shift) if shift else None,
    )


def _datagram(row: Row) -> UdpDatagram:
    time, source, destination, _, source_port, destination_port, length, payload = row
    return UdpDatagram(
        time_us=_time_us(time),
        source=source.decode(),
        source_port=int(source_port),
        destination=destination.decode(),
        destination_port=int(destination_port),
        payload_bytes=int(length) - _UDP_HEADER_BYTES,
        payload=bytes.fromhex(payload.decode()),
    )


def _time_us(epoch: bytes) -> int:
    seconds, _, fraction = epoch.partition(b".")
    return int(seconds) * 1_000_000 + int(fraction[:6].ljust(6, b"0"))
