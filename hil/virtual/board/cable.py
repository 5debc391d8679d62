"""The USB cable: one wire each way between the chip's UART and the host, and the baud rates at their ends."""

from __future__ import annotations

from collections.abc import Callable

from hil.virtual.board.boot import ROM_BAUD
from hil.virtual.board.config import Host
from hil.virtual.board.line import Wire

# A paced UART blocks its writer once its transmit buffer is full.
_TRANSMIT_BUFFER_BYTES = 8192


class Cable:
    """``host`` is attached before the board is switched on; ``chip_baud`` is the rate of the chip's UART.

    ``to_chip`` gets what arrives at the chip. While ``measures_baud``, the chip takes its rate from the host.
    ``on_drained`` is called when all that the chip has sent is through.
    """

    def __init__(
        self,
        to_chip: Callable[[bytes], None],
        *,
        measures_baud: Callable[[], bool],
        on_drained: Callable[[], None],
        paced: bool,
    ) -> None:
        self.host: Host | None = None
        self.chip_baud = ROM_BAUD
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
            self.host.receive(data)
