# SPDX-License-Identifier: Apache-2.0
"""Answers mDNS questions for the rack's broker: its name, and the service _mqtt._tcp (RFC 6762, RFC 6763).

Started by hil.probe.peers in the rack's network. Who asks from another port than 5353 is answered alone, as a
plain resolver. It does not look whether somebody else has the name.
"""

from __future__ import annotations

import argparse
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.network.peers.gateway.lines import LineWriter

READY, ANSWERED = "ready", "answered"
GROUP, PORT = "224.0.0.251", 5353
SERVICE = "_mqtt._tcp.local"
A, PTR, TXT, SRV, ANY = 1, 12, 16, 33, 255
TTL_S, HOST_TTL_S, PLAIN_TTL_S = 4500, 120, 10
RESPONSE, FLUSH = 0x8400, 0x8000


@dataclass(frozen=True)
class AnnouncedBroker:
    """What is offered: ``name`` without ``.local`` is the host's and the service's."""

    name: str
    address: str
    port: int

    @property
    def host(self) -> str:
        return f"{self.name}.local"

    @property
    def instance(self) -> str:
        return f"{self.name}.{SERVICE}"

    def records(self, asked: str, kind: int) -> tuple[list[Record], list[Record]]:
        """Return what answers a question, and what belongs to it."""
        pointer = Record(SERVICE, PTR, TTL_S, packed(self.instance))
        server = Record(
            self.instance, SRV, HOST_TTL_S, struct.pack(">HHH", 0, 0, self.port) + packed(self.host)
        )
        texts = Record(self.instance, TXT, TTL_S, b"\0")
        address = Record(self.host, A, HOST_TTL_S, socket.inet_aton(self.address))
        records = [
            record
            for record in (pointer, server, texts, address)
            if record.name.lower() == asked.lower() and kind in (record.kind, ANY)
        ]
        more = {PTR: [server, texts, address], SRV: [address]}
        extra = [also for record in records for also in more.get(record.kind, []) if also not in records]
        if asked.lower() == "_services._dns-sd._udp.local" and kind in (PTR, ANY):
            return [Record(asked, PTR, TTL_S, packed(SERVICE))], []
        return records, extra


@dataclass(frozen=True)
class Record:
    name: str
    kind: int
    ttl_s: int
    data: bytes

    def bytes_for(self, *, plain: bool) -> bytes:
        kept = FLUSH if self.kind != PTR and not plain else 0
        ttl_s = min(self.ttl_s, PLAIN_TTL_S) if plain else self.ttl_s
        return (
            packed(self.name) + struct.pack(">HHIH", self.kind, 1 | kept, ttl_s, len(self.data)) + self.data
        )


def packed(name: str) -> bytes:
    """Return a name as DNS has it: each label behind its length."""
    labels = [label.encode() for label in name.split(".")]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def read_name(message: bytes, at: int) -> tuple[str, int]:
    """Return the name at a place and where it ends. Raises ValueError, IndexError: it is none."""
    labels: list[str] = []
    end = 0
    for _ in range(128):
        length = message[at]
        if length & 0xC0 == 0xC0:
            end = end or at + 2
            at = int.from_bytes(message[at : at + 2], "big") & 0x3FFF
        elif length == 0:
            return ".".join(labels), end or at + 1
        else:
            labels.append(message[at + 1 : at + 1 + length].decode(errors="replace"))
            at += 1 + length
    raise ValueError("a name without an end")


def questions(message: bytes) -> list[tuple[str, int]]:
    """Return names and kinds that a query asks for, none where it is no query. Raises as read_name()."""
    _id, flags, count = struct.unpack_from(">HHH", message)
    found, at = list[tuple[str, int]](), 12
    for _ in range(0 if flags & 0x8000 else count):
        name, at = read_name(message, at)
        found.append((name, int.from_bytes(message[at : at + 2], "big")))
        at += 4
    return found


def answer(message: bytes, broker: AnnouncedBroker, *, plain: bool) -> bytes:
    """Return the response to a query, empty where there is none."""
    try:
        asked = questions(message)
    except (ValueError, IndexError, struct.error):
        return b""
    found = [broker.records(name, kind) for name, kind in asked]
    records = [record for first, _ in found for record in first]
    extra = [record for _, more in found for record in more if record not in records]
    if not records:
        return b""
    repeated = [packed(name) + struct.pack(">HH", kind, 1) for name, kind in asked] if plain else []
    head = struct.pack(
        ">HHHHHH",
        int.from_bytes(message[:2], "big") if plain else 0,
        RESPONSE,
        len(repeated),
        len(records),
        0,
        len(extra),
    )
    return head + b"".join(repeated) + b"".join(one.bytes_for(plain=plain) for one in [*records, *extra])


def open_socket(address: str) -> socket.socket:
    """Join the group on the interface that has ``address``."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    interface = socket.inet_aton(address)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
    opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
    opened.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + interface)
    opened.bind(("", PORT))
    return opened


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Answers mDNS questions for a broker.")
    parser.add_argument("--name", required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--lines", type=Path, required=True)
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    broker = AnnouncedBroker(arguments.name, arguments.address, arguments.port)
    with LineWriter(arguments.lines) as lines, open_socket(arguments.address) as served:
        lines.write(READY)
        while True:
            message, sender = served.recvfrom(9000)
            plain = sender[1] != PORT
            if response := answer(message, broker, plain=plain):
                served.sendto(response, sender if plain else (GROUP, PORT))
                lines.write(ANSWERED, to=sender[0], asked=[name for name, _ in questions(message)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
