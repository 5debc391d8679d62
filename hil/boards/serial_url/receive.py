"""The receiving half of a Telnet connection: the stream taken apart, and bytes kept until they are read."""

from __future__ import annotations

import threading
from collections.abc import Callable

from serial import rfc2217


class ReceiveBuffer:
    """Bytes on their way from the reader thread to ``read``."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._changed = threading.Condition()
        self.ended = False

    def put(self, data: bytes) -> None:
        with self._changed:
            self._data += data
            self._changed.notify_all()

    def end(self) -> None:
        """The connection is lost: nothing more will come."""
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def clear(self) -> None:
        with self._changed:
            self._data.clear()

    def __len__(self) -> int:
        return len(self._data)

    def take(self, size: int, timeout_s: float | None) -> bytes:
        """Return ``size`` bytes, fewer where ``timeout_s`` passes or the connection ends first."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._data) >= size or self.ended, timeout_s)
            data = bytes(self._data[:size])
            del self._data[:size]
            return data


class TelnetParser:
    """Splits a Telnet stream (RFC 854) into payload, commands, negotiations and subnegotiations."""

    def __init__(
        self,
        *,
        payload: Callable[[bytes], None],
        command: Callable[[bytes], None],
        negotiate: Callable[[bytes, bytes], None],
        subnegotiate: Callable[[bytes], None],
    ) -> None:
        self._payload, self._command = payload, command
        self._negotiate, self._subnegotiate = negotiate, subnegotiate
        self._pending = b""
        self._suboption: bytearray | None = None

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream; a command may be split anywhere."""
        data, self._pending = self._pending + data, b""
        at = 0
        while at < len(data):
            end = data.find(rfc2217.IAC, at)
            end = len(data) if end < 0 else end
            if end > at:
                self._take(data[at:end])
                at = end
                continue
            used = self._take_command(data[at : at + 3])
            if not used:
                self._pending = data[at:]
                return
            at += used

    def _take(self, data: bytes) -> None:
        if self._suboption is None:
            self._payload(data)
        else:
            self._suboption += data

    def _take_command(self, data: bytes) -> int:
        """Act on the command that begins ``data``; return its length, 0 where it is not complete."""
        code = data[1:2]
        if not code:
            return 0
        if code in (rfc2217.DO, rfc2217.DONT, rfc2217.WILL, rfc2217.WONT):
            if len(data) < 3:
                return 0
            self._negotiate(code, data[2:3])
            return 3
        if code == rfc2217.IAC:
            self._take(rfc2217.IAC)
        elif code == rfc2217.SB:
            self._suboption = bytearray()
        elif code == rfc2217.SE:
            suboption, self._suboption = bytes(self._suboption or b""), None
            self._subnegotiate(suboption)
        else:
            self._command(code)
        return 2
