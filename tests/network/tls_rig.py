# SPDX-License-Identifier: Apache-2.0
"""What the tests of the host's esp-tls stand on: a client that is told what to do, and servers for it."""

from __future__ import annotations

import contextlib
import functools
import re
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.host_builds import build_sanitized
from tests.network.mqtt_rig import free_ports

DEADLINE_S = 30.0

Said = Mapping[str, str]


@functools.cache
def _program() -> Path:
    return build_sanitized("test_tls_driver") / "test" / "test_tls_driver"


def drive(*commands: str) -> list[Said]:
    """Run the program with these commands: what each said, its first word as ``result``."""
    told = "".join(f"{command}\n" for command in commands)
    done = subprocess.run(
        [_program()], input=told, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = re.findall(r"^(?:connect|get|echo|save|resolve) (\S+) ?(.*)$", done.stdout, re.MULTILINE)
    return [{"result": first} | dict(word.split("=", 1) for word in rest.split()) for first, rest in lines]


@contextmanager
def s_server(pem: Path, *options: str) -> Iterator[int]:
    """OpenSSL's server: it answers GET with what it knows of the session. Yields its port."""
    port = free_ports(1)[0]
    own = {"-cert": "server.pem", "-key": "server.key", "-CAfile": "ca.pem"}
    files = [word for option, name in own.items() for word in (option, str(pem / name))]
    argv = ["openssl", "s_server", "-accept", f"127.0.0.1:{port}", *files, "-www", *options]
    server = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    try:
        while "ACCEPT" not in (line := server.stdout.readline()):
            assert line, "openssl s_server ended"
        yield port
    finally:
        server.kill()
        server.communicate()


@contextmanager
def peer(behave: Callable[[socket.socket], None], backlog: int = 8) -> Iterator[int]:
    """A TCP listener on the loopback that does this to each connection; yields its port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=backlog)

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):  # who found fault has gone, at any point
                behave(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(DEADLINE_S)


def until_closed(connection: socket.socket) -> None:
    """Take all and answer nothing."""
    connection.settimeout(DEADLINE_S)
    while connection.recv(4096):
        pass


def says(answer: bytes) -> Callable[[socket.socket], None]:
    """A peer that reads the ClientHello, says this and waits for the other side's end."""

    def behave(connection: socket.socket) -> None:
        connection.settimeout(DEADLINE_S)
        connection.recv(4096)
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_WR)
        until_closed(connection)

    return behave


def echo(connection: socket.socket) -> None:
    """Give back what came."""
    connection.settimeout(DEADLINE_S)
    while data := connection.recv(65536):
        connection.sendall(data)
