# SPDX-License-Identifier: Apache-2.0
"""iperf 2's UDP datagrams in a capture: transit differences, loss and order.

The first 12 bytes of a datagram (include/payloads.h of iperf 2, big endian): id (32 bits, negative on the
last one), seconds and microseconds of the sender's clock.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.network.dissect.transport import read_udp

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
