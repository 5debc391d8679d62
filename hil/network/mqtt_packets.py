# SPDX-License-Identifier: Apache-2.0
"""MQTT 3.1.1 packets as bytes, for clients that must do without a library: as fast or as plain as can be."""

from __future__ import annotations

import socket
from dataclasses import dataclass

CONNACK, PUBLISH, PUBACK, SUBACK, PINGRESP = 2, 3, 4, 9, 13
PINGREQ_BYTES = b"\xc0\x00"
DISCONNECT_BYTES = b"\xe0\x00"


@dataclass(frozen=True)
class Packet:
    """A packet that came: ``first`` is its first byte, ``body`` what follows its length."""

    first: int
    body: bytes

    @property
    def type(self) -> int:
        return self.first >> 4

    @property
    def qos(self) -> int:
        return self.first >> 1 & 3

    @property
    def retained(self) -> bool:
        return bool(self.first & 1)

    @property
    def payload(self) -> bytes:
        """Return the payload of a PUBLISH."""
        return self.body[self._id_at() + (2 if self.qos else 0) :]

    @property
    def id(self) -> int:
        """Return the packet id of a PUBLISH of QoS 1 or 2."""
        return int.from_bytes(self.body[self._id_at() :][:2], "big")

    def _id_at(self) -> int:
        return 2 + int.from_bytes(self.body[:2], "big")


def _text(text: str) -> bytes:
    data = text.encode()
    return len(data).to_bytes(2, "big") + data


def _packet(first: int, body: bytes) -> bytes:
    length, rest = bytearray(), len(body)
    while True:
        rest, digit = divmod(rest, 128)
        length.append(digit | (0x80 if rest else 0))
        if not rest:
            return bytes([first]) + bytes(length) + body


def connect_packet(client_id: str, *, clean_session: bool = True, keep_alive_s: int = 0) -> bytes:
    """Return a CONNECT without name, password and will; a ``keep_alive_s`` of 0 is none."""
    settings = bytes([4, 2 if clean_session else 0]) + keep_alive_s.to_bytes(2, "big")
    return _packet(0x10, _text("MQTT") + settings + _text(client_id))


def publish_packet(
    topic: str, payload: bytes, *, packet_id: int = 0, qos: int = 0, retain: bool = False
) -> bytes:
    """Return a PUBLISH; ``packet_id`` counts for QoS 1 and 2."""
    identity = packet_id.to_bytes(2, "big") if qos else b""
    return _packet(0x30 | qos << 1 | retain, _text(topic) + identity + payload)


def subscribe_packet(packet_id: int, topic: str, *, qos: int = 0) -> bytes:
    return _packet(0x82, packet_id.to_bytes(2, "big") + _text(topic) + bytes([qos]))


def connect(
    address: str,
    port: int,
    client_id: str,
    timeout_s: float,
    *,
    clean_session: bool = True,
    keep_alive_s: int = 0,
) -> socket.socket:
    """Connect and be greeted; the last two as connect_packet has them.

    Raises OSError, EOFError, and ConnectionRefusedError where the broker refuses.
    """
    connection = socket.create_connection((address, port), timeout_s)
    try:
        connection.sendall(connect_packet(client_id, clean_session=clean_session, keep_alive_s=keep_alive_s))
        _require_welcome(read_packet(connection), f"{address}:{port} to {client_id}")
    except BaseException:
        connection.close()
        raise
    return connection


def _require_welcome(answer: Packet, who: str) -> None:
    if answer.type != CONNACK or answer.body[1:] != b"\0":
        raise ConnectionRefusedError(f"{who}: no, {answer.body.hex()}")


def read_packet(connection: socket.socket) -> Packet:
    """Wait for a packet. Raises EOFError where the connection ends, TimeoutError after its timeout."""
    first = _receive(connection, 1)[0]
    length = shift = 0
    while True:
        digit = _receive(connection, 1)[0]
        length |= (digit & 0x7F) << shift
        shift += 7
        if not digit & 0x80:
            return Packet(first, _receive(connection, length))


def _receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError("the broker closed the connection")
        data += more
    return data
