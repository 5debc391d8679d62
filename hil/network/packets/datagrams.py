"""iperf 2's UDP datagrams in a capture: transit differences, loss and order.

The first 12 bytes of a datagram (include/payloads.h of iperf 2, big endian): id (32 bits, negative on the
last one), seconds and microseconds of the sender's clock.

The TCP segments and UDP datagrams of a capture file.

Reads the frames of a capture file: pcapng (draft-ietf-opsawg-pcapng) and the older pcap.

Of pcapng: sections of either byte order, interfaces with their names and resolutions of time, enhanced packet
blocks. Other blocks are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import dpkt

from hil.base.errors import RigError

LINKTYPE_ETHERNET = 1
BLOCK_BYTES_MAX = 1 << 24
FRAMING_BYTES = 12  # a block's type and its length, which comes again at its end
_SECTION, _INTERFACE, _PACKET, _SIMPLE_PACKET, _ENHANCED_PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_OPTION_END, _IF_NAME, _IF_TSRESOL, _IF_TSOFFSET = 0, 2, 9, 14
_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
# byte order, and what a tick of the time stamps is
_PCAP_ORDERS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
_SECTION_START = b"\x0a\x0d\x0d\x0a"  # the same in both byte orders


class Frame(NamedTuple):
    """One frame. ``time_ns`` is the capturing host's wall clock, ``interface`` a name, "" where the file has
    none, ``wire_bytes`` the frame's length, ``data`` what was kept of it, beginning with Ethernet."""

    time_ns: int
    interface: str
    wire_bytes: int
    data: bytes


@dataclass(frozen=True, slots=True)
class _Interface:
    name: str
    units_per_s: int
    offset_ns: int


def read_frames(path: Path) -> Iterator[Frame]:
    """Yield the frames of a capture file in the order of the file.

    A last block that is not whole is left out: so ends the file of a capture that was killed. The file is
    read at once. Raises RigError: no capture, a damaged one, frames without a time or not of Ethernet.
    """
    try:
        content = path.read_bytes()
        if content[:4] == _SECTION_START:
            yield from _read_pcapng(path, content)
        else:
            yield from _read_pcap(path, content)
    except (OSError, struct.error, IndexError) as error:
        raise _damaged(path, str(error)) from error


def _read_pcap(path: Path, content: bytes) -> Iterator[Frame]:
    known = _PCAP_ORDERS.get(content[:4])
    if known is None:
        raise _damaged(path, "it is neither pcapng nor pcap")
    order, tick_ns = known
    link_type = struct.unpack_from(order + "I", content, 20)[0]
    if link_type != LINKTYPE_ETHERNET:
        raise _damaged(path, f"its link type is {link_type}, not Ethernet")
    head = struct.Struct(order + "IIII")
    at = 24
    while at + head.size <= len(content):
        seconds, ticks, kept, wire_bytes = head.unpack_from(content, at)
        start, at = at + head.size, at + head.size + kept
        if kept > BLOCK_BYTES_MAX:
            raise _damaged(path, f"byte {start}: a frame of {kept} bytes")
        if at <= len(content):
            time_ns = seconds * 1_000_000_000 + ticks * tick_ns
            yield Frame(time_ns, "", wire_bytes, content[start:at])


def _read_pcapng(path: Path, content: bytes) -> Iterator[Frame]:
    at, end = 0, len(content)
    interfaces: list[_Interface] = []
    head, packet, tail = struct.Struct("<II"), struct.Struct("<IIIII"), struct.Struct("<I")
    while at + FRAMING_BYTES <= end:
        if content[at : at + 4] == _SECTION_START:
            order = _byte_order(path, content, at)
            head, packet, tail = (struct.Struct(order + fields) for fields in ("II", "IIIII", "I"))
            interfaces = []
        kind, length = head.unpack_from(content, at)
        if length < FRAMING_BYTES or length % 4 or length > BLOCK_BYTES_MAX:
            raise _damaged(path, f"byte {at}: a block of {length} bytes")
        if at + length > end:
            return
        if tail.unpack_from(content, at + length - 4)[0] != length:
            raise _damaged(path, f"byte {at}: a block's two lengths differ")
        if kind == _ENHANCED_PACKET:
            number, high, low, kept, wire_bytes = packet.unpack_from(content, at + 8)
            if number >= len(interfaces) or kept > length - 8 - packet.size - 4:
                raise _damaged(path, f"byte {at}: a frame that is longer than its block, or of no interface")
            interface = interfaces[number]
            ticks = high << 32 | low
            time_ns = ticks * 1_000_000_000 // interface.units_per_s + interface.offset_ns
            start = at + 8 + packet.size
            yield Frame(time_ns, interface.name, wire_bytes, content[start : start + kept])
        elif kind == _INTERFACE:
            interfaces.append(_interface(path, content[at : at + length], head.format[:1]))
        elif kind in (_PACKET, _SIMPLE_PACKET):
            raise _damaged(
                path, f"byte {at}: a frame in a block of type {kind}, which this reader leaves out"
            )
        at += length


def _byte_order(path: Path, content: bytes, at: int) -> str:
    order = _ORDERS.get(content[at + 8 : at + 12])
    if order is None:
        raise _damaged(path, f"byte {at}: a section without a byte order")
    return order


def _interface(path: Path, block: bytes, order: str) -> _Interface:
    """Read an interface's block: link type, snap length, options."""
    link_type = struct.unpack_from(order + "H", block, 8)[0]
    if link_type != LINKTYPE_ETHERNET:
        raise _damaged(path, f"the link type of an interface is {link_type}, not Ethernet")
    name, resolution, offset_s = "", 6, 0
    for code, value in _options(block[16:-4], order):
        if code == _IF_NAME:
            name = value.decode(errors="replace")
        elif code == _IF_TSRESOL:
            resolution = value[0]
        elif code == _IF_TSOFFSET:
            offset_s = struct.unpack(order + "q", value)[0]
    units_per_s = 1 << (resolution & 0x7F) if resolution & 0x80 else 10**resolution
    return _Interface(name, units_per_s, offset_s * 1_000_000_000)


def _options(content: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(content):
        code, length = struct.unpack_from(order + "HH", content, at)
        if code == _OPTION_END:
            return
        yield code, content[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4


def _damaged(path: Path, what: str) -> RigError:
    return RigError(
        f"Reading the capture {path}: {what}.",
        log=str(path),
        next_step="run again with --keep-captures, and look at the file with tshark.",
    )


@dataclass(frozen=True, slots=True)
class Packet:
    """One TCP segment or UDP datagram; ``payload`` holds what the snap length left of it.

    ``time_us`` is the host's wall clock. ``header_bytes`` are those of IP and TCP or UDP, options included.
    """

    time_us: int
    source: str
    source_port: int
    destination: str
    destination_port: int
    header_bytes: int
    payload_bytes: int
    payload: bytes
    transport: dpkt.tcp.TCP | dpkt.udp.UDP


def read_tcp(path: Path) -> Iterator[Packet]:
    """Yield the TCP segments of a capture in the order captured. Raises RigError: not a capture."""
    return _read(path, dpkt.tcp.TCP)


def read_udp(path: Path) -> Iterator[Packet]:
    """Yield the UDP datagrams of a capture (first fragments only). Raises RigError: not a capture."""
    return _read(path, dpkt.udp.UDP)


def _read(path: Path, wanted: type[dpkt.tcp.TCP] | type[dpkt.udp.UDP]) -> Iterator[Packet]:
    names: dict[bytes, str] = {}
    try:
        for frame in read_frames(path):
            packet = _packet(frame.time_ns, frame.data, wanted, names)
            if packet is not None:
                yield packet
    except dpkt.Error as error:
        raise RigError(f"Reading the capture {path}: {error}.", log=str(path)) from error


def _packet(
    time_ns: int, frame: bytes, wanted: type[dpkt.tcp.TCP] | type[dpkt.udp.UDP], names: dict[bytes, str]
) -> Packet | None:
    ip = dpkt.ethernet.Ethernet(frame).data
    if not isinstance(ip, dpkt.ip.IP) or not isinstance(ip.data, wanted) or ip.offset:
        return None
    transport = ip.data
    own_bytes = transport.off * 4 if wanted is dpkt.tcp.TCP else 8
    header_bytes = ip.hl * 4 + own_bytes
    payload_bytes = ip.len - header_bytes if wanted is dpkt.tcp.TCP else transport.ulen - own_bytes
    return Packet(
        time_ns // 1000,
        _name(ip.src, names),
        transport.sport,
        _name(ip.dst, names),
        transport.dport,
        header_bytes,
        payload_bytes,
        bytes(transport.data),
        transport,
    )


def _name(address: bytes, names: dict[bytes, str]) -> str:
    if address not in names:
        names[address] = ".".join(str(byte) for byte in address)
    return names[address]


HEADER = struct.Struct("!iII")
UDP_HEADER_BYTES = 28  # IP and UDP


@dataclass(frozen=True, slots=True)
class Datagram:
    """One datagram of the test; ``sent_us`` is the sender's clock, ``arrived_us`` the host's."""

    id: int
    sent_us: int
    arrived_us: int
    payload_bytes: int


@dataclass(frozen=True)
class Transit:
    """The datagrams of one interval: |D(i-1, i)| of RFC 3550, its mean and maximum."""

    difference_mean_us: int
    difference_max_us: int


@dataclass(frozen=True)
class DatagramFacts:
    """Datagrams of one direction, the final ones left out.

    ``lost_count`` are the ids below the highest that never came, ``out_of_order_count`` came after a higher
    one, ``duplicate_count`` came twice.
    """

    count: int
    payload_bytes: int
    lost_count: int
    out_of_order_count: int
    duplicate_count: int

    @property
    def header_bytes(self) -> int:
        return self.count * UDP_HEADER_BYTES


def read_datagrams(path: Path, *, port: int, sender: str) -> list[Datagram]:
    """Return the test's datagrams from ``sender`` in the order captured. Raises RigError: not a capture."""
    found = []
    for packet in read_udp(path):
        if packet.source != sender or port not in (packet.source_port, packet.destination_port):
            continue
        if len(packet.payload) < HEADER.size:
            continue
        number, seconds, microseconds = HEADER.unpack_from(packet.payload)
        if number >= 0:
            sent_us = seconds * 1_000_000 + microseconds
            found.append(Datagram(number, sent_us, packet.time_us, packet.payload_bytes))
    return found


def facts_of(datagrams: Sequence[Datagram]) -> DatagramFacts:
    """Count what came, what did not, and in which order. Ids start at 1."""
    seen: set[int] = set()
    late = duplicates = highest = 0
    for datagram in datagrams:
        if datagram.id in seen:
            duplicates += 1
        elif datagram.id < highest:
            late += 1
        seen.add(datagram.id)
        highest = max(highest, datagram.id)
    first = min(seen, default=1)
    return DatagramFacts(
        count=len(datagrams),
        payload_bytes=sum(datagram.payload_bytes for datagram in datagrams),
        lost_count=highest - min(first, 1) + 1 - len(seen) if seen else 0,
        out_of_order_count=late,
        duplicate_count=duplicates,
    )


def transits(datagrams: Sequence[Datagram], *, interval_us: int, count: int) -> list[Transit]:
    """Return the transit differences of ``count`` intervals, the first beginning with the first datagram.

    Both clocks may be wrong: only the difference of two transits counts, so an offset cancels out.
    """
    differences: list[list[int]] = [[] for _ in range(count)]
    before: int | None = None
    for datagram in datagrams:
        transit = datagram.arrived_us - datagram.sent_us
        if before is not None:
            index = (datagram.arrived_us - datagrams[0].arrived_us) // interval_us
            if 0 <= index < count:
                differences[index].append(abs(transit - before))
        before = transit
    return [
        Transit(round(sum(some) / len(some)), max(some)) if some else Transit(0, 0) for some in differences
    ]
