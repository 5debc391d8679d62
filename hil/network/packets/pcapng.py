"""Reads the frames of a capture file: pcapng (draft-ietf-opsawg-pcapng) and the older pcap.

Of pcapng: sections of either byte order, interfaces with their names and resolutions of time, enhanced packet
blocks. Other blocks are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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
