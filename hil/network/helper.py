# SPDX-License-Identifier: Apache-2.0
"""Programs that need root, started by the rack's root helper (hil.network.root_helper)."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from hil.base.errors import RigError
from hil.network.root_helper import PROGRAMS, SOCKET

SOCKET_VARIABLE = "HIL_HELPER"
START_TIMEOUT_S = 10.0
_LOOK = "look at what it says: journalctl -u 'hil-helper@*'."


def helper_for(program: str) -> Path | None:
    """Return the socket of the helper that starts ``program``; None where this process does so itself."""
    path = Path(os.environ.get(SOCKET_VARIABLE, SOCKET))
    wanted = Path(program).name in PROGRAMS and os.geteuid() != 0
    return path if wanted and path.is_socket() else None


class HelperProcess:
    """A program that the helper runs. It ends with this process, as the connection does."""

    def __init__(self, connection: socket.socket, log_path: Path, name: str) -> None:
        self.pid = 0
        self._connection = connection
        self._log_path = log_path
        self._name = name
        self._status: int | None = None
        self._refused = ""
        self._started = threading.Event()
        self._ended = threading.Event()
        threading.Thread(target=self._listen, name=f"helper-{name}", daemon=True).start()

    @classmethod
    def start(cls, path: Path, argv: Sequence[str], *, log_path: Path) -> HelperProcess:
        """Start ``argv``; its output is appended to ``log_path``. Raises RigError: no answer, or refused."""
        name = Path(argv[0]).name
        log_path.parent.mkdir(parents=True, exist_ok=True)
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(START_TIMEOUT_S)
        try:
            connection.connect(str(path))
            _request(connection, [name, *argv[1:]])
        except OSError as error:
            connection.close()
            sentence = f"Starting {name} by the root helper at {path}: {error.strerror or error}."
            raise RigError(sentence, next_step="sudo systemctl restart hil-helper.socket.") from error
        connection.settimeout(None)
        process = cls(connection, log_path, name)
        process._await_start(path)
        return process

    @property
    def returncode(self) -> int | None:
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the status. Raises TimeoutError after ``timeout`` seconds."""
        if not self._ended.wait(timeout):
            raise TimeoutError(f"{self._name}, pid {self.pid}, still runs after {timeout} s")
        assert self._status is not None
        return self._status

    def send_signal(self, number: int) -> None:
        """Let the helper signal the process group; nothing happens when it has ended."""
        with contextlib.suppress(OSError):
            self._connection.sendall(json.dumps({"signal": int(number)}).encode() + b"\n")

    def terminate(self) -> None:
        self.send_signal(15)

    def kill(self) -> None:
        self.send_signal(9)

    def _await_start(self, path: Path) -> None:
        if not self._started.wait(START_TIMEOUT_S):
            self._connection.close()
            raise RigError(
                f"Starting {self._name}: the root helper at {path} does not answer.", next_step=_LOOK
            )
        if self._refused:
            raise RigError(
                f"Starting {self._name}: the root helper refuses {self._refused}.", next_step=_LOOK
            )

    def _listen(self) -> None:
        with (
            contextlib.suppress(OSError, ValueError),
            self._connection.makefile("rb") as lines,
            self._log_path.open("ab", buffering=0) as log,
        ):
            for line in lines:
                self._take(json.loads(line), log.write)
        if self._status is None:
            self._status = -9  # the helper is gone, and with it what it ran
        self._started.set()
        self._ended.set()
        self._connection.close()

    def _take(self, answer: dict[str, object], write: Callable[[bytes], object]) -> None:
        if isinstance(said := answer.get("said"), str):
            write(said.encode())
        elif isinstance(pid := answer.get("pid"), int):
            self.pid = pid
            self._started.set()
        elif isinstance(why := answer.get("refused"), str):
            self._refused, self._status = why, 126
            self._started.set()
        elif isinstance(status := answer.get("status"), int):
            self._status = status
            self._ended.set()


def _request(connection: socket.socket, argv: list[str]) -> None:
    """Send what is asked for. Files that are read or written come along: root opens none of ours."""
    file, descriptor = "", None
    if argv[0] == "hostapd":
        file, argv = Path(argv[-1]).read_text(encoding="utf-8"), [*argv[:-1], "FILE"]
    if "-w" in argv and argv[0] == "dumpcap":
        place = argv.index("-w") + 1
        descriptor = os.open(argv[place], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        argv = [*argv[:place], "-", *argv[place + 1 :]]
    content = json.dumps({"argv": argv, "file": file}).encode() + b"\n"
    try:
        if descriptor is None:
            connection.sendall(content)
        else:
            socket.send_fds(connection, [content], [descriptor])
    finally:
        if descriptor is not None:
            os.close(descriptor)
