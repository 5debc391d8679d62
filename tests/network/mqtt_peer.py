# SPDX-License-Identifier: Apache-2.0
"""A broker by script: a test reads what the client sent, packet by packet, and decides what to answer."""

from __future__ import annotations

import fcntl
import socket
import ssl
import struct
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import cast

import trustme

from hil.network import mqtt_packets

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 1, 2, 3, 4, 5, 6, 7
SUBSCRIBE, SUBACK, PINGREQ, DISCONNECT = 8, 9, 12, 14
CONNECT_HEADER_BYTES = 10  # protocol name, level, flags and keep alive (MQTT 3.1.1, 3.1.2)
CONNECT_FLAGS_AT = 7
DEADLINE_S = 60.0
APPLICATION_DATA = 23  # TLS record type, RFC 5246 6.2.1


class Packet(mqtt_packets.Packet):
    """One packet of a client."""

    @property
    def dup(self) -> bool:
        return bool(self.first & 8)

    @property
    def id(self) -> int:
        if self.type != PUBLISH:
            return int.from_bytes(self.body[:2], "big")
        return super().id if self.qos else 0


def publish_packet(topic: str, payload: bytes, *, qos: int, message_id: int = 0) -> bytes:
    return mqtt_packets.publish_packet(topic, payload, packet_id=message_id, qos=qos)


def acknowledgement(packet_type: int, message_id: int) -> bytes:
    return struct.pack(">BBH", packet_type << 4, 2, message_id)


def nothing(packet: Packet) -> bool:
    """For Peer.serve: no message is acknowledged."""
    del packet
    return False


def unsent_bytes(local_port: int) -> int:
    """Bytes in the send queue of the loopback connection from this port, not acknowledged yet (proc(5))."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if int(words[1].split(":")[1], 16) == local_port:
            return int(words[4].split(":")[0], 16)
    raise AssertionError(f"no connection from port {local_port}")


@dataclass
class Connection:
    """One connection of the client, plain."""

    sock: socket.socket
    buffer: bytearray = field(default_factory=bytearray)
    client_id: str = ""  # of the CONNECT that greet() took
    clean_session: bool = True

    @property
    def peer_port(self) -> int:
        port = self.sock.getpeername()[1]
        assert isinstance(port, int)
        return port

    def receive(self) -> bytes:
        return self.sock.recv(65536)

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def close(self) -> None:
        self.sock.close()

    def recv(self, count: int) -> bytes:
        """Return what came, at most so many bytes."""
        self.buffer += b"" if self.buffer else self.receive()
        taken = bytes(self.buffer[:count])
        del self.buffer[:count]
        return taken

    def read(self) -> Packet:
        """Wait for the next packet. Raises EOFError where the client has closed the connection."""
        packet = mqtt_packets.read_packet(cast(socket.socket, self))
        return Packet(packet.first, packet.body)

    def greet(self, return_code: int = 0) -> None:
        """Take the CONNECT and answer it."""
        packet = self.read()
        assert packet.type == CONNECT
        at = CONNECT_HEADER_BYTES
        length = int.from_bytes(packet.body[at : at + 2], "big")
        self.client_id = packet.body[at + 2 : at + 2 + length].decode()
        self.clean_session = bool(packet.body[CONNECT_FLAGS_AT] & 2)
        self.send(bytes([CONNACK << 4, 2, 0, return_code]))

    def readable_bytes(self) -> int:
        """Bytes that have arrived and were not read."""
        waiting = fcntl.ioctl(self.sock, termios.FIONREAD, b"\0" * 4)
        return len(self.buffer) + int.from_bytes(waiting, "little")

    def wait_until_window_is_full(self) -> None:
        """Wait until no more bytes come although the client's send queue holds some. A client that the host
        does not let run has an empty queue: the kernel has sent what it wrote."""
        deadline = time.monotonic() + DEADLINE_S
        before, still = -1, 0
        while still < 10:
            assert time.monotonic() < deadline, "bytes went on coming"
            now = self.readable_bytes()
            still = still + 1 if now == before and unsent_bytes(self.peer_port) > 0 else 0
            before = now
            time.sleep(0.02)


@dataclass
class Peer:
    """Listens on a free loopback port with a small receive buffer, so that a client can be held up."""

    listener: socket.socket
    accepted: list[Connection] = field(default_factory=list)

    @classmethod
    @contextmanager
    def listen(cls) -> Iterator[Peer]:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(DEADLINE_S)
        peer = cls(listener)
        try:
            yield peer
        finally:
            listener.close()
            for connection in peer.accepted:
                connection.close()

    @property
    def port(self) -> int:
        port = self.listener.getsockname()[1]
        assert isinstance(port, int)
        return port

    @property
    def uri(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    def _accept_socket(self) -> socket.socket:
        sock, _ = self.listener.accept()
        sock.settimeout(DEADLINE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def accept(self) -> Connection:
        self.accepted.append(Connection(self._accept_socket()))
        return self.accepted[-1]

    @contextmanager
    def serve(
        self,
        acknowledges: Callable[[Packet], bool],
        *,
        packets_per_connection: int | None = None,
        return_code: int = 0,
    ) -> Iterator[None]:
        """Answer on a thread: CONNECT, SUBSCRIBE, and the QoS 1 messages that `acknowledges` picks."""

        def answer(connection: Connection) -> None:
            connection.greet(return_code)
            packets = count() if packets_per_connection is None else range(packets_per_connection)
            for _ in packets:
                packet = connection.read()
                if packet.type == SUBSCRIBE:
                    connection.send(struct.pack(">BBHB", SUBACK << 4, 3, packet.id, 0))
                elif packet.type == PUBLISH and acknowledges(packet):
                    connection.send(acknowledgement(PUBACK, packet.id))
            connection.close()

        def answer_all() -> None:
            while True:
                try:
                    connection = self.accept()
                except OSError:
                    return  # the listener was closed
                with suppress(OSError, EOFError):
                    answer(connection)

        thread = threading.Thread(target=answer_all)
        thread.start()
        try:
            yield
        finally:
            self.listener.shutdown(socket.SHUT_RDWR)
            for connection in self.accepted:
                with suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)
            thread.join(DEADLINE_S)
            assert not thread.is_alive()


@dataclass
class TlsConnection(Connection):
    """A connection whose TLS runs in memory here, so that the records on the wire can be counted."""

    context: ssl.SSLContext = field(default_factory=lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    wire: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = self.context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                self._feed()
            else:
                self._flush()
                return

    def _flush(self) -> None:
        self.sock.sendall(self.outgoing.read())

    def _feed(self) -> None:
        data = self.sock.recv(65536)
        if not data:
            raise EOFError
        self.wire += data
        self.incoming.write(data)

    def receive(self) -> bytes:
        while True:
            try:
                return self.tls.read(65536)
            except ssl.SSLWantReadError:
                self._feed()

    def send(self, data: bytes) -> None:
        self.tls.write(data)
        self._flush()

    def forget_records(self) -> None:
        self.wire.clear()

    def record_lengths(self) -> list[int]:
        """Plain lengths of the application-data records since forget_records.

        AES-GCM adds 24 bytes in TLS 1.2 (RFC 5288).
        """
        cipher = self.tls.cipher()
        assert cipher is not None
        assert ("GCM" in cipher[0], self.tls.version()) == (True, "TLSv1.2")
        lengths, at = [], 0
        while at < len(self.wire):
            record_type, _, length = struct.unpack_from(">BHH", self.wire, at)
            at += 5 + length
            if record_type == APPLICATION_DATA:
                lengths.append(length - 24)
        return lengths

    @property
    def session_reused(self) -> bool | None:
        return self.tls.session_reused


@dataclass
class TlsPeer(Peer):
    """As Peer, with TLS 1.2."""

    context: ssl.SSLContext = field(default_factory=lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))

    @classmethod
    @contextmanager
    def listen(cls, authority: trustme.CA | None = None) -> Iterator[TlsPeer]:
        assert authority is not None
        with Peer.listen() as plain:
            peer = cls(plain.listener, plain.accepted)
            authority.issue_cert("127.0.0.1").configure_cert(peer.context)
            peer.context.set_ciphers("ECDHE+AESGCM")
            yield peer

    @property
    def uri(self) -> str:
        return f"mqtts://127.0.0.1:{self.port}"

    def accept(self) -> TlsConnection:
        connection = TlsConnection(self._accept_socket(), context=self.context)
        self.accepted.append(connection)
        return connection
