"""The TCP segments and UDP datagrams of a capture file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dpkt

from hil.base.errors import RigError
from hil.network.packets.pcapng import read_frames


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
