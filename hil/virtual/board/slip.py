# SPDX-License-Identifier: Apache-2.0
"""SLIP framing of the serial loader (RFC 1055, as ESP chips use it)."""

from __future__ import annotations

from collections.abc import Iterator

END, ESC = b"\xc0", b"\xdb"
_ESC_END, _ESC_ESC = b"\xdb\xdc", b"\xdb\xdd"
# The largest packet is a 16 KiB block with every byte escaped; more without an END is noise.
_MAX_PENDING_BYTES = 1 << 16


def encode(packet: bytes) -> bytes:
    """Return ``packet`` as one frame."""
    return END + packet.replace(ESC, _ESC_ESC).replace(END, _ESC_END) + END


class Decoder:
    """Turns a stream of bytes into packets; empty frames are dropped."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the packets that ``data`` completes."""
        self._pending += data
        while (end := self._pending.find(END)) >= 0:
            frame = bytes(self._pending[:end])
            del self._pending[: end + 1]
            if frame:
                yield frame.replace(_ESC_END, END).replace(_ESC_ESC, ESC)
        if len(self._pending) > _MAX_PENDING_BYTES:
            self._pending.clear()
