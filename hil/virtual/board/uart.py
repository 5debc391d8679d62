# SPDX-License-Identifier: Apache-2.0
"""The board's USB-serial adapter as an RFC 2217 server: one client at a time, the newest wins.

pyserial's PortManager speaks Telnet and RFC 2217; this module carries bytes and line states between
it, the socket and the board.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Protocol

from serial import rfc2217

from hil.virtual.board.cable import Cable
from hil.virtual.board.reset import ResetCircuit

_IAC = rfc2217.IAC
# An adapter's buffer towards a client that does not read; beyond it bytes are lost.
_CLIENT_BUFFER_BYTES = 1 << 20
_CLIENT_WAITING_BYTES = 1 << 18  # from which on a board that can wait is asked to


class Wired(Protocol):
    """The board as its adapter sees it: reset lines, and a cable that may be pulled."""

    @property
    def circuit(self) -> ResetCircuit: ...
    @property
    def cable(self) -> Cable: ...
    @property
    def unplugged(self) -> bool: ...


class Adapter:
    """What PortManager takes for a serial port. DTR and RTS go to the board's reset circuit."""

    bytesize, parity, stopbits = 8, "N", 1
    xonxoff = rtscts = break_condition = False
    cts = dsr = cd = True
    ri = False

    def __init__(self, board: Wired) -> None:
        self._board = board
        self.baudrate = 115200

    @property
    def dtr(self) -> bool:
        return self._board.circuit.dtr

    @dtr.setter
    def dtr(self, on: bool) -> None:
        self._board.circuit.set_lines(dtr=on, rts=self.rts)

    @property
    def rts(self) -> bool:
        return self._board.circuit.rts

    @rts.setter
    def rts(self, on: bool) -> None:
        self._board.circuit.set_lines(dtr=self.dtr, rts=on)

    def release_lines(self) -> None:
        """Both lines at once, as the adapter does when its port is closed: no reset by a client's end."""
        self._board.circuit.set_lines(dtr=False, rts=False)

    def reset_input_buffer(self) -> None:
        """Nothing is buffered here."""

    def reset_output_buffer(self) -> None:
        """Nothing is buffered here."""


class UartServer:
    """Accepts clients on ``listener`` for ``board``; also the board's Host."""

    def __init__(self, board: Wired, listener: socket.socket, log: Callable[[str], None]) -> None:
        self._board, self._listener, self._log = board, listener, log
        self._adapter = Adapter(board)
        self._client: _Client | None = None
        self._server: asyncio.Server | None = None
        board.cable.host = self

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Client(self), sock=self._listener)

    def close(self) -> None:
        self.disconnect()
        if self._server:
            self._server.close()

    @property
    def connected(self) -> bool:
        return self._client is not None

    # Host

    @property
    def baud(self) -> int:
        return self._adapter.baudrate

    @property
    def has_room(self) -> bool:
        return self._client is None or not self._client.is_full

    def room_made(self) -> None:
        """The client has read what waited for it."""
        self._board.cable.on_drained()

    def receive(self, data: bytes) -> None:
        if self._client:
            self._client.send(data.replace(_IAC, _IAC + _IAC))

    @property
    def unplugged(self) -> bool:
        """Whether no client can have the port."""
        return self._board.unplugged

    def disconnect(self) -> None:
        if self._client:
            self._client.drop()
            self.forget(self._client)

    # clients

    def adopt(self, client: _Client, peer: str) -> rfc2217.PortManager:
        """Let a new client have the port; the one before it is cut off."""
        if self._client:
            self._log("a newer client takes over")
        self.disconnect()
        self._client = client
        self._log(f"client {peer}")
        return rfc2217.PortManager(self._adapter, client)  # type: ignore[arg-type] # it takes anything alike

    def forget(self, client: _Client) -> None:
        if self._client is client:
            self._client = None
            self._adapter.release_lines()
            self._log("client gone")
            self.room_made()

    def refuse(self, client: _Client, error: Exception) -> None:
        """Cut a client off that does not speak RFC 2217: pyserial raises what its words lead to."""
        self._log(f"a client that speaks no RFC 2217 is cut off: {error}")
        client.drop()

    def from_client(self, data: bytes) -> None:
        self._board.cable.receive(data)


class _Client(asyncio.Protocol):
    """One connection."""

    def __init__(self, server: UartServer) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._manager: rfc2217.PortManager | None = None
        self.is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if self._server.unplugged:
            transport.abort()
            return
        self._transport = transport
        transport.set_write_buffer_limits(high=_CLIENT_WAITING_BYTES)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._manager = self._server.adopt(self, str(transport.get_extra_info("peername")))

    def data_received(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return  # cut off in favour of a newer client
        self._split(data)

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        self._server.room_made()

    def connection_lost(self, _error: Exception | None) -> None:
        self._server.forget(self)
        self._transport = None

    def write(self, data: bytes) -> None:
        """Send Telnet commands; PortManager calls this."""
        if self._transport and not self._transport.is_closing():
            self._transport.write(data)

    def send(self, data: bytes) -> None:
        """Send payload, already escaped; lost where the client has long not read."""
        if self._transport and self._transport.get_write_buffer_size() < _CLIENT_BUFFER_BYTES:
            self.write(data)

    def drop(self) -> None:
        if self._transport:
            self._transport.abort()

    def _split(self, data: bytes) -> None:
        """Pass payload on in order; PortManager sees only the bytes of commands and doubled IACs.

        It is a state machine in Python and takes a byte at a time, which a megabyte of image feels.
        """
        manager = self._manager
        assert manager is not None
        payload: list[bytes] = []
        at = 0
        while at < len(data):
            in_payload = manager.mode == rfc2217.M_NORMAL and manager.suboption is None
            end = data.find(_IAC, at) if in_payload else at
            end = len(data) if end < 0 else end
            payload.append(data[at:end])
            if data[end : end + 2] != _IAC + _IAC:
                self._flush(payload)  # a command may follow: it must not overtake what was sent before it
            try:
                payload.extend(manager.filter(data[end : end + 1]))
            except (TypeError, ValueError, LookupError, struct.error) as error:
                self._server.refuse(self, error)
                return
            at = end + 1
        self._flush(payload)

    def _flush(self, payload: list[bytes]) -> None:
        data = b"".join(payload)
        payload.clear()
        if data:
            self._server.from_client(data)
