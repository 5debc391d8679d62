# SPDX-License-Identifier: Apache-2.0
"""``watched://``: whoever waits for a port knows it, and a connection that was lost stays lost."""

from __future__ import annotations

import os
import socket
from typing import Any

import pytest
import serial

from hil.boards import serial_url
from hil.boards.serial_url.protocol_watched import watched
from tests.lab import wait_for

serial_url.register()


def test_a_port_is_known_before_it_is_open() -> None:
    """What is made under the address, open or not, is in the list, and is the port it stands for."""
    master, slave = os.openpty()
    ports: list[Any] = []
    try:
        with watched(os.ttyname(slave), ports) as address:
            port = serial.serial_for_url(address, baudrate=9600, do_not_open=True)
        assert ports == [port]
        assert (port.port, port.baudrate, port.is_open) == (os.ttyname(slave), 9600, False)
        assert isinstance(port, serial.Serial)
        port.open()
        os.write(master, b"ready")
        port.timeout = 5.0
        assert port.read(5) == b"ready"
        port.close()
    finally:
        os.close(master)
        os.close(slave)


def test_what_arrives_is_handed_over_at_once() -> None:
    """The listener has each piece when it came, in order; who asks in turns gets nothing of it."""
    pieces: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        with watched(f"socket://127.0.0.1:{server.getsockname()[1]}", []) as address:
            port = serial.serial_for_url(address, timeout=0.05)
        there, _ = server.accept()
        port.listen(pieces.append)
        for sent, word in ((b"first", b"first"), (b"firstsecond", b"second")):
            there.sendall(word)
            wait_for(lambda sent=sent: b"".join(pieces) == sent, lambda: f"this came: {pieces}")  # type: ignore[misc]
            assert port.read_all() == b""
        there.close()
        port.close()


def test_a_lost_connection_stays_lost() -> None:
    """The reader gets nothing instead of an error that has it open the port anew; the cause is kept."""
    ports: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        with watched(f"socket://127.0.0.1:{server.getsockname()[1]}", ports) as address:
            port = serial.serial_for_url(address, timeout=0.05)
        there, _ = server.accept()
        port.listen(lambda _data: None)
        assert port.read_all() == b""
        assert port.lost is None
        there.close()
        wait_for(lambda: port.lost is not None, lambda: "the port did not notice")
        assert "disconnected" in str(port.lost)
        assert port.read_all() == b""
        port.close()


def test_an_address_ends_with_its_block() -> None:
    """Nobody opens a port by an address that nobody waits for any more."""
    with watched("/dev/null", []) as address:
        pass
    with pytest.raises(ValueError, match="nobody watches"):
        serial.serial_for_url(address)
