# SPDX-License-Identifier: Apache-2.0
"""Unix sockets at paths of any length, and JSON messages with file descriptors over them.

A socket address holds 107 bytes of path at most (unix(7)), less than many a work folder: the folder is
opened and the socket addressed through /proc/self/fd.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

MESSAGE_MAX_BYTES = 200_000
MAX_FDS = 128


@contextlib.contextmanager
def _short_path(path: Path) -> Iterator[str]:
    folder_fd = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder_fd}/{path.name}"
    finally:
        os.close(folder_fd)


def listen(path: Path, *, kind: socket.SocketKind = socket.SOCK_SEQPACKET) -> socket.socket:
    """Listen at ``path``, readable by the owner only; an old socket there is replaced. Raises OSError."""
    path.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX, kind)
    with _short_path(path) as address:
        server.bind(address)
    path.chmod(0o600)
    server.listen(16)
    return server


def connect(
    path: Path, *, timeout_s: float, kind: socket.SocketKind = socket.SOCK_SEQPACKET
) -> socket.socket:
    """Connect to the socket at ``path``. Raises OSError."""
    client = socket.socket(socket.AF_UNIX, kind)
    client.settimeout(timeout_s)
    try:
        with _short_path(path) as address:
            client.connect(address)
    except OSError:
        client.close()
        raise
    return client


def send_message(connection: socket.socket, message: Mapping[str, Any], *, fds: Sequence[int] = ()) -> None:
    """Send one JSON message, with descriptors. Raises OSError."""
    data = json.dumps(message).encode()
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    connection.sendmsg([data], ancillary)


def receive_message(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Receive one JSON message and its descriptors, which are closed where the message does not parse.

    Raises EOFError when the other end is gone, OSError, ValueError for what is not a JSON object.
    """
    data, fds, _flags, _address = socket.recv_fds(connection, MESSAGE_MAX_BYTES, MAX_FDS)
    try:
        return parse_message(data), fds
    except (EOFError, ValueError):
        close_all(fds)
        raise


def close_all(fds: Sequence[int]) -> None:
    """Close received descriptors."""
    for fd in fds:
        os.close(fd)


def parse_message(data: bytes) -> dict[str, Any]:
    """Read one message's bytes. Raises EOFError when there are none: the other end is gone; ValueError."""
    if not data:
        raise EOFError("the other end closed the connection")
    try:
        message = json.loads(data)
    except RecursionError as error:
        raise ValueError("the message is nested too deeply") from error
    if not isinstance(message, dict):
        raise ValueError("the message is not a JSON object")  # noqa: TRY004
    return message
