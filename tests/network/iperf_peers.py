# SPDX-License-Identifier: Apache-2.0
"""Peers of the board that no iperf would play: liars, mutes, strangers, and a path that loses.

Run as ``python -m tests.network.iperf_peers NAME [ARGUMENT…]``; each writes ``ready`` when a board may come.
"""

from __future__ import annotations

import socket
import struct
import sys
import time

LOOPBACK = "127.0.0.1"
BOARD = (LOOPBACK, 5001)
LIFE_S = 20.0
DATAGRAM_BYTES = 1470


def _ready() -> None:
    print("ready", flush=True)


def _listen(kind: socket.SocketKind) -> socket.socket:
    server = socket.socket(socket.AF_INET, kind)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(BOARD)
    server.settimeout(LIFE_S)
    if kind is socket.SOCK_STREAM:
        server.listen()
    _ready()
    return server


def _accepted() -> socket.socket:
    return _listen(socket.SOCK_STREAM).accept()[0]


def _client() -> socket.socket:
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.connect(BOARD)
    return client


def datagram(number: int, *, sent_s: float | None = None, header: bytes = b"") -> bytes:
    stamp = time.time() if sent_s is None else sent_s
    head = struct.pack(
        ">IIIi", number & 0xFFFFFFFF, int(stamp), int(stamp % 1 * 1e6), -1 if number < 0 else 0
    )
    return (head + header).ljust(DATAGRAM_BYTES, b"\0")


def hold_port(kind: str) -> None:
    """Have the port and do nothing."""
    server = _listen(socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
    time.sleep(LIFE_S)
    server.close()


def mute_server() -> None:
    """Take the connection and read nothing, ever."""
    connection = _accepted()
    time.sleep(LIFE_S)
    connection.close()


def rude_server() -> None:
    """Reset the connection in the middle of the test."""
    connection = _accepted()
    connection.recv(100_000, socket.MSG_WAITALL)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def hasty_server() -> None:
    """Send for -R a little, and close long before the time."""
    connection = _accepted()
    connection.recv(60, socket.MSG_WAITALL)
    connection.sendall(bytes(50_000))
    connection.close()


def lying_server(lost: str, count: str) -> None:
    """Report such counts at the end of a UDP test."""
    server = _listen(socket.SOCK_DGRAM)
    while True:
        data, client = server.recvfrom(2000)
        if struct.unpack_from(">i", data)[0] < 0:
            values = (0x88000000, 0, 1000, 1, 0, int(lost), 0, int(count), 0, 100)
            upper = tuple(-1 if value < 0 else 0 for value in (int(lost), 0, int(count)))
            server.sendto(
                bytes(16) + struct.pack(">Iiiiiiiiii", *values) + bytes(60) + struct.pack(">iii", *upper),
                client,
            )


def deaf_server() -> None:
    """Take datagrams and never report."""
    server = _listen(socket.SOCK_DGRAM)
    while True:
        server.recvfrom(2000)


def witness(kind: str) -> None:
    """Say when the board has come, and do nothing."""
    server = _listen(socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
    connection = server.accept()[0] if kind == "tcp" else server
    connection.recv(2000)
    print("met", flush=True)
    time.sleep(LIFE_S)


def tcp_client(text: str) -> None:
    """Connect, send these bytes (in hexadecimal), and keep the connection."""
    _ready()
    with socket.create_connection(BOARD) as connection:
        connection.sendall(bytes.fromhex(text))
        time.sleep(LIFE_S)


def headerless_tcp_client() -> None:
    """Send for a second what the example in old ESP-IDFs sends: no header."""
    _ready()
    end = time.monotonic() + 1.0
    with socket.create_connection(BOARD) as connection:
        while time.monotonic() < end:
            connection.sendall(bytes(16384))
            time.sleep(0.01)


def headerless_udp_client() -> None:
    """Send for a second what the example in old ESP-IDFs sends: numbers, no time, no header, no end."""
    client = _client()
    _ready()
    for number in range(100):
        client.send(struct.pack(">iII", number + 1, 0, 0).ljust(DATAGRAM_BYTES, b"\0"))
        time.sleep(0.01)


def stranger() -> None:
    """Send datagrams that are no iperf's."""
    client = _client()
    _ready()
    while True:
        client.send(b"\x80hello")
        client.send(datagram(-7))
        client.send(b"\x7f" * 100)
        time.sleep(0.02)


def disorderly_client() -> None:
    """Send 1, 3, 2, 3, 6, a number from nowhere, and the end (10): then print what the board reports."""
    client = _client()
    _ready()
    client.settimeout(5.0)
    start = time.time()
    for number in (1, 3, 2, 3, 6, 2_000_000_000):
        client.send(datagram(number, sent_s=start, header=struct.pack(">Iiiiii", 0, 0, 0, 0, 0, 0)))
    client.send(datagram(-10, sent_s=start))
    report = client.recv(2000)
    client.send(datagram(-11, sent_s=start))
    again = client.recv(2000)
    flags, _, total, _, _, lost, out_of_order, count = struct.unpack_from(">Iiiiiiii", report, 16)
    print(len(report), hex(flags), total, lost, out_of_order, count, again == report, flush=True)


def falling_silent_client() -> None:
    """Begin a test and stop without a word."""
    client = _client()
    _ready()
    for number in range(1, 20):
        client.send(datagram(number))
    time.sleep(LIFE_S)


def lossy_path(port: str, every: str) -> None:
    """Pass datagrams on to the board, but every so-many-th of the client's; the last ones all get through."""
    near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    near.bind((LOOPBACK, int(port)))
    far = _client()
    far.setblocking(False)
    near.settimeout(0.005)
    _ready()
    client = None
    while True:
        try:
            data, client = near.recvfrom(2000)
            number = struct.unpack_from(">i", data)[0]
            if number < 0 or number % int(every):
                far.send(data)
        except TimeoutError:
            pass
        try:
            answer = far.recv(2000)
            if client:
                near.sendto(answer, client)
        except BlockingIOError:
            pass


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
