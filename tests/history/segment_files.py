# SPDX-License-Identifier: Apache-2.0
"""Captures written by hand: TCP segments byte by byte, for what no real peer would send on request."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, field
from pathlib import Path

import dpkt

from hil.network.mqtt_packets import _packet
from hil.network.mqtt_packets import _text as text

CLIENT, SERVER = "10.0.0.2", "10.0.0.1"
CLIENT_PORT, BROKER_PORT = 40000, 1883
CLIENT_START, SERVER_START = 1000, 5000
FIN, SYN, RST, ACK = dpkt.tcp.TH_FIN, dpkt.tcp.TH_SYN, dpkt.tcp.TH_RST, dpkt.tcp.TH_ACK
TIMESTAMPS = b"\x01\x01\x08\x0a" + bytes(8)


def mqtt(first: int, body: bytes = b"") -> bytes:
    """Return one MQTT packet: its first byte, the length of the rest, the rest."""
    return _packet(first, body)


def connect(client_id: str = "board", level: int = 4) -> bytes:
    properties = b"\x00" if level == 5 else b""
    return mqtt(0x10, text("MQTT") + bytes([level, 2, 0, 60]) + properties + text(client_id))


def publish(topic: str, payload: bytes, *, qos: int = 0, message_id: int = 0, flags: int = 0) -> bytes:
    number = struct.pack(">H", message_id) if qos else b""
    return mqtt(0x30 | qos << 1 | flags, text(topic) + number + payload)


def subscribe(*topics: str, message_id: int = 1) -> bytes:
    return mqtt(0x82, struct.pack(">H", message_id) + b"".join(text(topic) + b"\x00" for topic in topics))


def answer(first: int, message_id: int) -> bytes:
    return mqtt(first, struct.pack(">H", message_id))


CONNACK = mqtt(0x20, b"\0\0")


@dataclass
class SegmentFile:
    """A connection in the making. Each segment comes 1 ms after the one before, unless a gap is given."""

    frames: list[tuple[float, bytes]] = field(default_factory=list)
    time_s: float = 1000.0
    client_port: int = CLIENT_PORT
    broker_port: int = BROKER_PORT
    next: dict[bool, int] = field(default_factory=lambda: {True: CLIENT_START, False: SERVER_START})

    def open(self) -> None:
        self.client(flags=SYN)
        self.server(flags=SYN | ACK)
        self.client()

    def client(self, payload: bytes = b"", **how: float) -> None:
        self.add(True, payload, **how)

    def server(self, payload: bytes = b"", **how: float) -> None:
        self.add(False, payload, **how)

    def add(
        self,
        up: bool,
        payload: bytes,
        *,
        flags: float = ACK,
        gap_s: float = 0.001,
        sequence: float | None = None,
        acknowledges: float | None = None,
        capture: bool = True,
        padding: float = 0,
    ) -> None:
        """Send one segment; without ``capture`` it is not seen, with ``sequence`` it is sent again."""
        number = self.next[up] if sequence is None else int(sequence)
        acknowledged = self.next[not up] if acknowledges is None else int(acknowledges)
        ends = [(CLIENT, self.client_port), (SERVER, self.broker_port)]
        (source, source_port), (destination, port) = ends if up else ends[::-1]
        tcp = dpkt.tcp.TCP(
            sport=source_port,
            dport=port,
            seq=number,
            ack=acknowledged if int(flags) & ACK else 0,
            flags=int(flags),
            win=60000,
            opts=TIMESTAMPS,
            data=payload,
        )
        tcp.off = (20 + len(TIMESTAMPS)) // 4
        ip = dpkt.ip.IP(src=address(source), dst=address(destination), p=6, data=tcp)
        ip.len = len(ip)
        frame = dpkt.ethernet.Ethernet(src=b"\x02\0\0\0\0\1", dst=b"\x02\0\0\0\0\2", type=0x0800, data=ip)
        self.time_s += gap_s
        if capture:
            self.frames.append((self.time_s, bytes(frame) + bytes(int(padding))))
        if sequence is None:
            span = len(payload) + bool(int(flags) & (SYN | FIN))
            self.next[up] = (number + span) % 2**32

    def write(self, path: Path) -> Path:
        with path.open("wb") as file:
            writer = dpkt.pcap.Writer(file, snaplen=262_144)
            for time_s, frame in self.frames:
                writer.writepkt(frame, time_s)
        return path


def address(text_: str) -> bytes:
    return ipaddress.ip_address(text_).packed
