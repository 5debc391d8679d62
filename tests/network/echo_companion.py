# SPDX-License-Identifier: Apache-2.0
"""A companion for tests: a process that echoes bytes, started when the board asks for it."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from hil.base.errors import HilError, RigError
from hil.model import Series
from hil.network.peers.companion import Observed, Place
from hil.network.process import Process
from hil.wire import Note

DEADLINE_S = 20.0
# answers one connection, then says how many bytes it echoed
ECHO = """
import socket, sys
with socket.create_server((sys.argv[1], int(sys.argv[2]))) as server:
    connection, _ = server.accept()
    count = 0
    while data := connection.recv(1):
        connection.sendall(data)
        count += 1
print(count, flush=True)
"""


class EchoCompanion:
    """hil.network.peers.companion.Companion; ``trouble`` is raised by the call of that name."""

    def __init__(self, place: Place, trouble: Mapping[str, HilError] | None = None) -> None:
        self.place = place
        self.notes: list[Note] = []
        self.calls: list[str] = []
        self._trouble = trouble or {}
        self._process: Process | None = None
        self._port = 0

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if name in self._trouble:
            raise self._trouble[name]

    def start(self) -> Mapping[str, str | int]:
        self._called("start")
        with socket.create_server((self.place.host_address, 0)) as probe:
            self._port = int(probe.getsockname()[1])
        return {"peer_host": self.place.host_address, "peer_port": self._port}

    def note(self, note: Note) -> None:
        self.notes.append(note)
        self._called("note")
        if self._process is None:
            argv = [sys.executable, "-c", ECHO, self.place.host_address, str(self._port)]
            self._process = self.place.spawner.spawn(argv, log_path=self.place.folder / "echo.log")

    def check(self) -> None:
        self._called("check")

    def finish(self, series: Series) -> Observed:
        self._called("finish")
        if self._process is None or self._process.wait(DEADLINE_S) != 0:
            raise RigError("the echo server failed.")
        count = int((self.place.folder / "echo.log").read_text())
        columns = {**series.columns, "echoed_count": (1,) * count}
        return Observed(replace(series, columns=columns), {"echoed_bytes": count})

    def stop(self) -> None:
        self.calls.append("stop")
        if self._process:
            self._process.kill()
            with suppress(TimeoutError):
                self._process.wait(DEADLINE_S)
