# SPDX-License-Identifier: Apache-2.0
"""The real firmware as a process: its console is a socket, the tests' end of it is a session's console."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import time
from pathlib import Path

from hil.base.errors import RigError

EXIT_TIMEOUT_S = 60.0
EXIT_POLL_S = 0.05


class AgentProcess:
    """Runs hil-firmware.elf, the end of ``argv``, and restarts it when it restarts itself, as a board would.

    ``variables`` are VBOARD_ ones; those of the caller's own environment are left out.
    """

    def __init__(self, *argv: str | Path, **variables: str) -> None:
        self._argv = argv
        self._variables = variables
        self._socket, theirs = socket.socketpair()
        self._theirs = theirs
        self.boots = 0
        self.received = b""
        self._boot()

    def _boot(self) -> None:
        self.boots += 1
        environment = {key: value for key, value in os.environ.items() if not key.startswith("VBOARD_")}
        environment |= self._variables
        environment["VBOARD_RESET_REASON"] = "POWERON" if self.boots == 1 else "SW"
        console = self._theirs.fileno()
        self.process = subprocess.Popen(
            self._argv, stdin=console, stdout=console, stderr=subprocess.PIPE, env=environment
        )

    def read(self, timeout_s: float) -> bytes:
        deadline = time.monotonic() + timeout_s
        while True:
            remaining_s = max(0.0, deadline - time.monotonic())
            readable, _, _ = select.select([self._socket], [], [], min(remaining_s, EXIT_POLL_S))
            if readable:
                data = self._socket.recv(65536)
                self.received += data
                return data
            if self.process.poll() is not None:
                self._require_clean_exit()
                self._boot()
            if not remaining_s:
                return b""

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def stop(self) -> str:
        """Cut the console, which ends the program; return what it wrote to standard error."""
        self._socket.close()
        self._theirs.close()
        try:
            _, errors = self.process.communicate(timeout=EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, errors = self.process.communicate()
        return errors.decode(errors="replace")

    def _require_clean_exit(self) -> None:
        _, errors = self.process.communicate()
        if self.process.returncode != 0:
            raise RigError(f"the firmware ended with {self.process.returncode}: {errors.decode()}")
