# SPDX-License-Identifier: Apache-2.0
"""Own serial URLs: fastrfc2217:// waits less than pyserial's, a connection of watched:// stays lost."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import serial
from serial import rfc2217

from hil.boards import serial_url
from hil.boards.serial_url.protocol_fastrfc2217 import ReceiveBuffer, TelnetParser
from hil.boards.serial_url.protocol_watched import watched
from tests.lab import wait_for
from tests.virtual.virtual_board_rig import BoardProcess

IAC, SB, SE = rfc2217.IAC, rfc2217.SB, rfc2217.SE


@pytest.fixture
def port(process: BoardProcess) -> Iterator[serial.SerialBase]:
    serial_url.register()
    opened = serial.serial_for_url(process.url(), baudrate=115200, timeout=0.2)
    yield opened
    opened.close()


def test_register_may_be_called_again() -> None:
    """The handler's package is listed once, however often it is registered."""
    serial_url.register()
    serial_url.register()
    assert serial.protocol_handler_packages.count("hil.boards.serial_url") == 1


def test_name_makes_esptool_reset_line_by_line(port: serial.SerialBase, process: BoardProcess) -> None:
    """``name`` begins with rfc2217: as esptool asks; ``port`` is the URL that opens the same port again. A
    new baud rate and the two lines are acknowledged, thus in force, when the call returns."""
    assert port.name == process.url("rfc2217")
    assert port.port == process.url("fastrfc2217")
    port.baudrate = 460800
    port.rts = False
    state = process.control.state()
    assert (state["host_baud"], state["dtr"], state["rts"]) == (460800, True, False)


def test_timeout_is_not_negotiated(port: serial.SerialBase) -> None:
    """Setting ``timeout`` sends nothing; a negative one is refused."""
    sent: list[bytes] = []
    port._internal_raw_write = sent.append
    port.timeout = 1.5
    assert port.timeout == 1.5
    assert sent == []
    with pytest.raises(ValueError, match="Not a valid timeout"):
        port.timeout = -1


def test_closed_port_refuses(port: serial.SerialBase) -> None:
    """A closed port cannot be read, and can be opened again."""
    port.close()
    with pytest.raises(serial.PortNotOpenError):
        port.read()
    port.open()
    assert port.is_open


def read_for_ever(port: serial.SerialBase) -> None:
    while True:
        port.read(port.in_waiting or 1)


def test_lost_connection_is_noticed(port: serial.SerialBase, process: BoardProcess) -> None:
    """After the server is gone there is something to wait for, and reading it raises."""
    process.control.disconnect()
    with pytest.raises(serial.SerialException, match="lost"):
        read_for_ever(port)
    assert port.in_waiting == 1
    with pytest.raises(serial.SerialException, match="connection was lost"):
        port.rts = False


def test_who_does_not_speak_rfc2217_is_refused() -> None:
    """A server that does not negotiate is not taken for a serial port; a refused connection names the URL."""
    serial_url.register()
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"fastrfc2217://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(serial.SerialException, match="does not seem to speak RFC 2217"):
            serial.serial_for_url(f"{url}?timeout=0.2")
    with pytest.raises(serial.SerialException, match=f"Could not open port {url}"):
        serial.serial_for_url(url)


def test_read_returns_when_there_is_enough() -> None:
    """A read ends with the bytes that were asked for, with fewer at its timeout, and at the end of all."""
    buffer = ReceiveBuffer()
    buffer.put(b"abc")
    assert buffer.take(2, None) == b"ab"
    assert buffer.take(5, 0.01) == b"c"
    reader = threading.Timer(0.05, buffer.put, (b"late",))
    reader.start()
    assert buffer.take(4, 10) == b"late"
    reader.join()
    buffer.put(b"end")
    buffer.end()
    assert buffer.take(10, None) == b"end"


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 100])
def test_telnet_stream_is_split_wherever_it_is_cut(chunk: int) -> None:
    """Payload, doubled IAC, commands and subnegotiations come out the same from chunks of any size."""
    payload, events = bytearray(), []
    parser = TelnetParser(
        payload=payload.extend,
        command=lambda code: events.append(("command", code)),
        negotiate=lambda code, option: events.append((code, option)),
        subnegotiate=lambda data: events.append(("sub", data)),
    )
    stream = b"ab" + IAC + IAC + b"c" + IAC + rfc2217.DO + b"\x2c" + b"d"
    stream += IAC + SB + b"\x2cx" + IAC + IAC + b"y" + IAC + SE + IAC + b"\xf1" + b"e"
    for at in range(0, len(stream), chunk):
        parser.feed(stream[at : at + chunk])
    assert bytes(payload) == b"ab\xffcde"
    assert events == [(rfc2217.DO, b"\x2c"), ("sub", b"\x2cx\xffy"), ("command", b"\xf1")]


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
