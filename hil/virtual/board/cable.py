# SPDX-License-Identifier: Apache-2.0
"""The USB cable: one wire each way between the chip's UART and the host, and the baud rates at their ends.

The two wires of a UART: bytes take time, and a wrong baud rate turns them into other bytes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from hil.virtual.board.boot import ROM_BAUD
from hil.virtual.board.config import CableHost

# Receivers sample in the middle of a bit; over ten bits they tolerate about this much (ESP32 TRM, UART).
BAUD_TOLERANCE = 0.03
BITS_PER_BYTE = 10
_PACE_STEP_S = 0.001


def same_baud(a: int, b: int) -> bool:
    """Return whether a receiver at ``a`` baud understands a sender at ``b`` baud."""
    return abs(a - b) <= BAUD_TOLERANCE * max(a, b)


def resample(data: bytes, *, sent_baud: int, received_baud: int) -> bytes:
    """Return what a receiver at another baud rate makes of ``data`` (8N1, least significant bit first).

    The level on the wire is sampled in the middle of each bit as the receiver counts them; a framing
    error is delivered as a byte, as a terminal without INPCK does.
    """
    if same_baud(sent_baud, received_baud):
        return data
    levels = [level for byte in data for level in (0, *((byte >> bit) & 1 for bit in range(8)), 1)]
    step = sent_baud / received_baud
    received = bytearray()
    at, end = 0.0, len(levels)
    while at < end:
        if levels[int(at)]:
            at = int(at) + 1  # idle: wait for the falling edge
            continue
        samples = (int(at + (bit + 0.5) * step) for bit in range(1, 9))
        received.append(sum((levels[s] if s < end else 1) << i for i, s in enumerate(samples)))
        at += 9.5 * step
    return bytes(received)


class Wire:
    """One direction. Bytes go to ``deliver``, garbled where the two ends disagree, paced where asked.

    ``sent_baud`` belongs to the bytes: a reply queued before a change of baud rate keeps the old one.
    """

    def __init__(
        self,
        deliver: Callable[[bytes], None],
        *,
        received_baud: Callable[[], int],
        paced: bool = False,
        on_drained: Callable[[], None] | None = None,
    ) -> None:
        self._deliver = deliver
        self._received_baud = received_baud
        self._paced = paced
        self._on_drained = on_drained
        self._queue: deque[tuple[int, bytes]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._free_at_s = 0.0
        self.queued_bytes = 0

    def send(self, data: bytes, *, sent_baud: int) -> None:
        if not data:
            return
        if not self._paced:
            self._put(data, sent_baud)
            return
        self._queue.append((sent_baud, data))
        self.queued_bytes += len(data)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._free_at_s = max(self._free_at_s, loop.time())
            self._schedule()

    def clear(self) -> None:
        """Drop what has not been sent: the sender lost power or was reset."""
        self._queue.clear()
        self.queued_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _schedule(self) -> None:
        baud, data = self._queue.popleft()
        count = max(1, int(baud / BITS_PER_BYTE * _PACE_STEP_S))
        if len(data) > count:
            self._queue.appendleft((baud, data[count:]))
        self._free_at_s += len(data[:count]) * BITS_PER_BYTE / baud
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(self._free_at_s, self._sent, data[:count], baud)

    def _sent(self, data: bytes, baud: int) -> None:
        self.queued_bytes -= len(data)
        self._put(data, baud)
        if self._queue:
            self._schedule()
            return
        self._timer = None
        if self._on_drained:
            self._on_drained()

    def _put(self, data: bytes, sent_baud: int) -> None:
        received = resample(data, sent_baud=sent_baud, received_baud=self._received_baud())
        if received:
            self._deliver(received)


# A paced UART blocks its writer once its transmit buffer is full.
_TRANSMIT_BUFFER_BYTES = 8192


class Cable:
    """``host`` is attached before the board is switched on; ``chip_baud`` is the rate of the chip's UART.

    ``to_chip`` gets what arrives at the chip. While ``measures_baud``, the chip takes its rate from the host.
    ``on_drained`` is called when all that the chip has sent is through, and when the host has room again.
    ``spoil`` returns what arrives at the host of what the chip has sent.
    """

    def __init__(
        self,
        to_chip: Callable[[bytes], None],
        *,
        measures_baud: Callable[[], bool],
        on_drained: Callable[[], None],
        paced: bool,
        spoil: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self._spoil = spoil
        self.host: CableHost | None = None
        self.chip_baud = ROM_BAUD
        self.on_drained = on_drained
        self._measures_baud = measures_baud
        self._to_host = Wire(
            self._deliver_to_host,
            received_baud=lambda: self.host_baud,
            paced=paced,
            on_drained=on_drained,
        )
        self._from_host = Wire(to_chip, received_baud=self._receiver_baud, paced=paced)

    @property
    def host_baud(self) -> int:
        return self.host.baud if self.host else ROM_BAUD

    @property
    def is_sending(self) -> bool:
        """Whether something that the chip has sent is still on the wire."""
        return self._to_host.queued_bytes > 0

    @property
    def has_room(self) -> bool:
        """Whether the chip can send more without waiting."""
        return self._to_host.queued_bytes <= _TRANSMIT_BUFFER_BYTES

    @property
    def host_has_room(self) -> bool:
        """Whether the host reads as fast as the chip sends; what it has no room for is lost."""
        return self.host is None or self.host.has_room

    def receive(self, data: bytes) -> None:
        """Bytes from the host."""
        self._from_host.send(data, sent_baud=self.host_baud)

    def transmit(self, data: bytes, *, baud: int | None = None) -> None:
        """Bytes from the chip, at the chip's own rate."""
        self._to_host.send(data, sent_baud=baud or self.chip_baud)

    def clear(self) -> None:
        """Drop what the chip has not sent yet: it was reset or lost power."""
        self._to_host.clear()

    def disconnect(self) -> None:
        """Cut the connection to the host."""
        if self.host:
            self.host.disconnect()

    def _receiver_baud(self) -> int:
        if self._measures_baud():
            self.chip_baud = self.host_baud
        return self.chip_baud

    def _deliver_to_host(self, data: bytes) -> None:
        if self.host:
            self.host.receive(self._spoil(data))
