# SPDX-License-Identifier: Apache-2.0
"""Who is at the other end of an example's connection, on the loopback and the examples' port."""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.examples_check.http_peer import http_client, httpbin

PORT = 3333
ADDRESS = ("127.0.0.1", PORT)
MESSAGE = b"Data to ESP"
RETRY_S = 0.1
SNTP_PORT = 123
NTP_TO_UNIX_S = 2208988800


@contextmanager
def peer(name: str, ended: threading.Event) -> Iterator[None]:
    """Run a peer until the block ends, which sets ``ended``."""
    if name == "mqtt-broker":
        with _broker():
            yield
        return
    work: Callable[[threading.Event], None] | None = {
        "tcp-server": _tcp_server,
        "udp-server": _udp_server,
        "tcp-client": _tcp_client,
        "udp-client": _udp_client,
        "sntp-server": _sntp_server,
        "httpbin": httpbin,
        "http-client": http_client,
    }.get(name)
    thread = threading.Thread(target=work, args=(ended,)) if work else None
    if thread:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if thread:
            thread.join()


def _tcp_server(ended: threading.Event) -> None:
    """Answer each connection's bytes with OK and the bytes, as the example's script does."""
    with socket.create_server(ADDRESS, reuse_port=False) as server:
        server.settimeout(RETRY_S)
        while not ended.is_set():
            try:
                connection, _ = server.accept()
            except TimeoutError:
                continue
            with connection:
                connection.settimeout(1)
                try:
                    connection.sendall(b"OK: " + connection.recv(1024))
                except OSError:
                    continue


def _udp_server(ended: threading.Event) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(ADDRESS)
        server.settimeout(RETRY_S)
        while not ended.is_set():
            try:
                data, sender = server.recvfrom(1024)
                server.sendto(b"OK: " + data, sender)
            except TimeoutError:
                continue


def _tcp_client(ended: threading.Event) -> None:
    """Send the message as soon as somebody listens."""
    while not ended.wait(RETRY_S):
        try:
            with socket.create_connection(ADDRESS, timeout=1) as connection:
                connection.sendall(MESSAGE)
                connection.recv(1024)
                return
        except OSError:
            continue


def _udp_client(ended: threading.Event) -> None:
    """Send the message until it is answered."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(RETRY_S)
        client.connect(ADDRESS)
        answer = b""
        while not answer and not ended.is_set():
            try:
                client.send(MESSAGE)
                answer = client.recv(1024)
            except ConnectionRefusedError:
                ended.wait(RETRY_S)
            except TimeoutError:
                continue


def _sntp_server(ended: threading.Event) -> None:
    """Say what time it is."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", SNTP_PORT))
        server.settimeout(RETRY_S)
        while not ended.is_set():
            try:
                _, sender = server.recvfrom(1024)
            except TimeoutError:
                continue
            answer = struct.pack(">BB38xII", 0x24, 2, int(time.time()) + NTP_TO_UNIX_S, 0)
            server.sendto(answer, sender)


@contextmanager
def _broker() -> Iterator[None]:
    program = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if program is None:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "mosquitto.conf"
        config.write_text(f"listener {PORT} 127.0.0.1\nallow_anonymous true\nuser root\n", encoding="utf-8")
        process = subprocess.Popen(
            [program, "-c", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait()
