"""Bytes of headers that a transfer over TCP needs, by formula: as `esp32-tcpip` published it, and corrected.

P is the size of a packet, headers of IP and TCP included (40 bytes), N the bytes to transfer.
"""

from __future__ import annotations

HEADERS_BYTES = 40  # IPv4 and TCP without options
TIMESTAMPS_BYTES = 12  # the TCP option, padded


def published_overhead_bytes(amount_bytes: int, packet_bytes: int) -> int:
    """ceil(N / P) · 40 − 40: takes a packet for N's payload, and leaves one packet's headers out."""
    return -(-amount_bytes // packet_bytes) * HEADERS_BYTES - HEADERS_BYTES


def overhead_bytes(amount_bytes: int, packet_bytes: int, *, timestamps: bool = False) -> int:
    """40 · ceil(N / (P − 40)), plus 12 a segment with TCP timestamps, which take their room from the payload.

    Raises ValueError: the packet holds no payload.
    """
    options = TIMESTAMPS_BYTES if timestamps else 0
    payload = packet_bytes - HEADERS_BYTES - options
    if payload <= 0:
        raise ValueError(f"a packet of {packet_bytes} bytes holds no payload")
    return -(-amount_bytes // payload) * (HEADERS_BYTES + options)
