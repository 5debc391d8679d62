# SPDX-License-Identifier: Apache-2.0
"""A process inside the rack's namespaces, seen from the outside."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from hil.base.errors import RigError
from hil.virtual import unix_socket

START_TIMEOUT_S = 10.0


class RemoteProcess:
    """What VirtualRack.spawn() returns. It is killed when this object's connection closes, at the latest
    when the owner's process ends.

    ``pid`` is the pid in the caller's namespace. When the rack goes away, ``returncode`` is -SIGKILL: the
    process died with it.
    """

    def __init__(self, connection: socket.socket, pid: int, argv: Sequence[str], log_path: Path) -> None:
        self.pid = pid
        self.argv = tuple(argv)
        self.log_path = log_path
        self._connection = connection
        self._lock = threading.Lock()
        self._returncode: int | None = None

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; None while the process runs."""
        self._receive(0.0)
        return self._returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return its status. Raises TimeoutError after ``timeout`` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._returncode is None:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError(f"{self.argv[0]} (pid {self.pid}) still runs after {timeout} s")
            self._receive(left)
        return self._returncode

    def send_signal(self, number: int) -> None:
        """Signal the process group; nothing happens when it has ended."""
        with contextlib.suppress(OSError):
            unix_socket.send_message(self._connection, {"op": "signal", "signal": int(number)})

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Let go of the process, which kills it if it still runs."""
        self._connection.close()
        if self._returncode is None:
            self._returncode = -signal.SIGKILL

    def _receive(self, timeout_s: float | None) -> None:
        with self._lock:
            if self._returncode is not None:
                return
            self._connection.settimeout(timeout_s)
            try:
                message, _ = unix_socket.receive_message(self._connection)
                self._returncode = int(message["exit"])
                self._connection.close()
            except (BlockingIOError, TimeoutError):
                return
            except (EOFError, OSError):
                self._returncode = -signal.SIGKILL
                self._connection.close()


def start(
    supervisor: Path,
    argv: Sequence[str],
    *,
    netns: str,
    log_path: Path,
    env: Mapping[str, str] | None,
    cwd: Path | None,
) -> RemoteProcess:
    """Ask the supervisor for a process. Raises RigError with its reason, OSError when it is gone."""
    request = {
        "op": "spawn",
        "argv": [str(word) for word in argv],
        "netns": netns,
        "env": dict(os.environ if env is None else env),
        "cwd": str(cwd or Path.cwd()),
    }
    log_path.parent.mkdir(parents=True, exist_ok=True)
    connection = unix_socket.connect(supervisor, timeout_s=START_TIMEOUT_S)
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        with log_path.open("ab") as log:
            unix_socket.send_message(connection, request, fds=[log.fileno()])
        pid = _receive_pid(connection, argv)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
    except BaseException:
        connection.close()
        raise
    return RemoteProcess(connection, pid, request["argv"], log_path)  # type: ignore[arg-type]


def _receive_pid(connection: socket.socket, argv: Sequence[str]) -> int:
    size = socket.CMSG_SPACE(struct.calcsize("iII"))
    data, ancillary, _, _ = connection.recvmsg(unix_socket.MESSAGE_MAX_BYTES, size)
    message = unix_socket.parse_message(data)
    if "error" in message:
        raise RigError(f"Starting {Path(argv[0]).name} in the virtual rack: {message['error']}.")
    credentials = next(content for level, kind, content in ancillary if kind == socket.SCM_CREDENTIALS)
    return int(struct.unpack("iII", credentials)[0])
