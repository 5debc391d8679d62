# SPDX-License-Identifier: Apache-2.0
"""QMP, QEMU's control protocol: a JSON object a line either way (docs/interop/qmp-spec.rst of QEMU)."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any

MONITOR = "qmp"


def monitor_options(fd: int) -> tuple[str, ...]:
    """Return QEMU's options for a monitor on an inherited, connected socket."""
    return ("-chardev", f"socket,id={MONITOR},fd={fd}", "-mon", f"chardev={MONITOR},mode=control")


class Monitor:
    """Speaks to QEMU over ``connection``. Commands are sent in order, from its greeting on.

    ``on_event`` gets each event's name and data, ``on_error`` what QEMU refused or could not be understood.
    """

    def __init__(
        self,
        connection: socket.socket,
        on_event: Callable[[str, dict[str, Any]], None],
        on_error: Callable[[str], None],
    ) -> None:
        self._connection, self._on_event, self._on_error = connection, on_event, on_error
        self._commands = [b'{"execute": "qmp_capabilities"}\n']
        self._greeted = False
        self._received = bytearray()
        connection.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(connection, self._readable)

    def execute(self, command: str) -> None:
        """Send a command without arguments, now or once QEMU has greeted."""
        self._commands.append(json.dumps({"execute": command, "id": command}).encode() + b"\n")
        self._send()

    def close(self) -> None:
        if self._connection.fileno() >= 0:
            self._loop.remove_reader(self._connection)
            self._connection.close()

    def _send(self) -> None:
        while self._greeted and self._commands:
            try:
                self._connection.sendall(self._commands.pop(0))
            except OSError as error:  # it is gone, or has long not read: whoever watches its process says so
                self._on_error(f"QMP: {error}")

    def _readable(self) -> None:
        try:
            data = self._connection.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._connection)
            return
        self._received += data
        while b"\n" in self._received:
            line, _, rest = bytes(self._received).partition(b"\n")
            self._received = bytearray(rest)
            self._handle(line)

    def _handle(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            self._on_error(f"QMP: no message: {line[:80]!r}")
            return
        if "QMP" in message:
            self._greeted = True
            self._send()
        elif "event" in message:
            self._on_event(message["event"], message.get("data", {}))
        elif "error" in message:
            self._on_error(f"QMP: {message.get('id', '')}: {message['error'].get('desc')}")
