# SPDX-License-Identifier: Apache-2.0
"""``fastrfc2217://host:port``: pyserial's RFC 2217 client without its waits.

It differs from ``rfc2217://`` in this, and in nothing that a server or a board can see in the order of
things: every change of a line or a setting still waits for its acknowledgement.

- An acknowledgement is awaited as an event; pyserial polls every 50 ms.
- A new ``timeout`` concerns this end only; pyserial negotiates all port settings again.
- Received bytes are kept in one buffer; pyserial queues them one by one.
- ``close`` does not wait for the server.

``name`` begins with ``rfc2217:``, so that esptool resets the chip line by line as it does over pyserial's.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable

from serial import PortNotOpenError, SerialException, rfc2217


class ReceiveBuffer:
    """Bytes on their way from the reader thread to ``read``."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._changed = threading.Condition()
        self.ended = False

    def put(self, data: bytes) -> None:
        with self._changed:
            self._data += data
            self._changed.notify_all()

    def end(self) -> None:
        """The connection is lost: nothing more will come."""
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def clear(self) -> None:
        with self._changed:
            self._data.clear()

    def __len__(self) -> int:
        return len(self._data)

    def take(self, size: int, timeout_s: float | None) -> bytes:
        """Return ``size`` bytes, fewer where ``timeout_s`` passes or the connection ends first."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._data) >= size or self.ended, timeout_s)
            data = bytes(self._data[:size])
            del self._data[:size]
            return data


SUBOPTION_BYTES_MAX = 256  # the longest is a signature's text; one that never ends fills no memory


class TelnetParser:
    """Splits a Telnet stream (RFC 854) into payload, commands, negotiations and subnegotiations."""

    def __init__(
        self,
        *,
        payload: Callable[[bytes], None],
        command: Callable[[bytes], None],
        negotiate: Callable[[bytes, bytes], None],
        subnegotiate: Callable[[bytes], None],
    ) -> None:
        self._payload, self._command = payload, command
        self._negotiate, self._subnegotiate = negotiate, subnegotiate
        self._pending = b""
        self._suboption: bytearray | None = None

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream; a command may be split anywhere."""
        data, self._pending = self._pending + data, b""
        at = 0
        while at < len(data):
            end = data.find(rfc2217.IAC, at)
            end = len(data) if end < 0 else end
            if end > at:
                self._take(data[at:end])
                at = end
                continue
            used = self._take_command(data[at : at + 3])
            if not used:
                self._pending = data[at:]
                return
            at += used

    def _take(self, data: bytes) -> None:
        if self._suboption is None:
            self._payload(data)
        else:
            self._suboption += data[: SUBOPTION_BYTES_MAX - len(self._suboption)]

    def _take_command(self, data: bytes) -> int:
        """Act on the command that begins ``data``; return its length, 0 where it is not complete."""
        code = data[1:2]
        if not code:
            return 0
        if code in (rfc2217.DO, rfc2217.DONT, rfc2217.WILL, rfc2217.WONT):
            if len(data) < 3:
                return 0
            self._negotiate(code, data[2:3])
            return 3
        if code == rfc2217.IAC:
            self._take(rfc2217.IAC)
        elif code == rfc2217.SB:
            self._suboption = bytearray()
        elif code == rfc2217.SE:
            suboption, self._suboption = bytes(self._suboption or b""), None
            self._subnegotiate(suboption)
        else:
            self._command(code)
        return 2


# pyserial's type stubs leave out the protected members that a handler builds on.
# mypy: disable-error-code="attr-defined,assignment,no-any-return,arg-type"


SCHEME = "fastrfc2217"
CONNECT_TIMEOUT_S = 5.0
ACKNOWLEDGE_TIMEOUT_S = 3.0
_RECEIVE_BYTES = 1 << 16
_JOIN_TIMEOUT_S = 5.0


class _Setting(rfc2217.TelnetSubnegotiation):
    """A setting whose acknowledgement can be awaited."""

    def __init__(self, connection: Serial, name: str, option: bytes, ack: bytes) -> None:
        super().__init__(connection, name, option, ack)
        self._answered = threading.Event()

    def set(self, value: bytes) -> None:
        """Send ``value``; ``wait`` says whether it has arrived."""
        self._answered.clear()
        if self.connection.lost:
            self.give_up()
            return
        try:
            super().set(value)
        except OSError as error:
            raise SerialException(
                f"the connection was lost before {self.name!r} was sent: {error}"
            ) from error

    def check_answer(self, suboption: bytes) -> None:
        super().check_answer(suboption)
        self._answered.set()

    def give_up(self) -> None:
        """The connection is lost: no answer will come."""
        self.state = rfc2217.INACTIVE
        self._answered.set()

    def wait(self, timeout: float = ACKNOWLEDGE_TIMEOUT_S) -> None:
        """Raises SerialException where no answer comes, ValueError where the server refuses the value."""
        if not self._answered.wait(timeout):
            raise SerialException(f"the RFC 2217 server did not acknowledge {self.name!r} in {timeout:g} s")
        if not self.is_ready():
            raise SerialException(f"the connection was lost before {self.name!r} was acknowledged")


class Serial(rfc2217.Serial):
    """The port; see pyserial's ``serial.rfc2217.Serial`` for what is not said here."""

    _buffer: ReceiveBuffer

    # naming

    @property
    def port(self) -> str | None:
        return self._port

    @port.setter
    def port(self, port: str | None) -> None:
        rfc2217.Serial.port.fset(self, port)
        self.name = self.portstr = port.replace(f"{SCHEME}:", "rfc2217:", 1) if port else port

    # timeouts concern this end only

    @property
    def timeout(self) -> float | None:
        return self._timeout

    @timeout.setter
    def timeout(self, timeout: float | None) -> None:
        if timeout is not None and timeout < 0:
            raise ValueError(f"Not a valid timeout: {timeout!r}")
        self._timeout = timeout

    # opening and closing

    def open(self) -> None:
        """Connect and negotiate. Raises SerialException."""
        if self._port is None:
            raise SerialException("Port must be configured before it can be used.")
        if self.is_open:
            raise SerialException("Port is already open.")
        self._connect()
        self._answered = threading.Condition()
        self._buffer = ReceiveBuffer()
        self._write_lock = threading.Lock()
        self._make_options()
        self.is_open = True
        name = f"reader of {self._port}"
        self._thread = threading.Thread(target=self._telnet_read_loop, name=name, daemon=True)
        self._thread.start()
        try:
            self._negotiate()
            self._reconfigure_port()
            if not self._dsrdtr:
                self._update_dtr_state()
            if not self._rtscts:
                self._update_rts_state()
            self.reset_input_buffer()
            self.reset_output_buffer()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        try:
            address = self.from_url(self.portstr)
            self._socket = socket.create_connection(address, timeout=CONNECT_TIMEOUT_S)
        except OSError as error:
            self._socket = None
            raise SerialException(f"Could not open port {self._port}: {error}") from error
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _make_options(self) -> None:
        r = rfc2217
        ours, theirs = (r.WILL, r.WONT, r.DO, r.DONT), (r.DO, r.DONT, r.WILL, r.WONT)
        self._mandatory = [
            r.TelnetOption(self, "we-BINARY", r.BINARY, *ours, r.INACTIVE),
            r.TelnetOption(self, "we-RFC2217", r.COM_PORT_OPTION, *ours, r.REQUESTED),
        ]
        self._telnet_options = [
            r.TelnetOption(self, "ECHO", r.ECHO, *theirs, r.REQUESTED),
            r.TelnetOption(self, "we-SGA", r.SGA, *ours, r.REQUESTED),
            r.TelnetOption(self, "they-SGA", r.SGA, *theirs, r.REQUESTED),
            r.TelnetOption(self, "they-BINARY", r.BINARY, *theirs, r.INACTIVE),
            r.TelnetOption(self, "they-RFC2217", r.COM_PORT_OPTION, *theirs, r.REQUESTED),
            *self._mandatory,
        ]
        self._rfc2217_port_settings = {
            "baudrate": _Setting(self, "baudrate", r.SET_BAUDRATE, r.SERVER_SET_BAUDRATE),
            "datasize": _Setting(self, "datasize", r.SET_DATASIZE, r.SERVER_SET_DATASIZE),
            "parity": _Setting(self, "parity", r.SET_PARITY, r.SERVER_SET_PARITY),
            "stopsize": _Setting(self, "stopsize", r.SET_STOPSIZE, r.SERVER_SET_STOPSIZE),
        }
        self._rfc2217_options = {
            "purge": _Setting(self, "purge", r.PURGE_DATA, r.SERVER_PURGE_DATA),
            "control": _Setting(self, "control", r.SET_CONTROL, r.SERVER_SET_CONTROL),
            **self._rfc2217_port_settings,
        }

    def _negotiate(self) -> None:
        for option in self._telnet_options:
            if option.state is rfc2217.REQUESTED:
                self.telnet_send_option(option.send_yes, option.option)

        def settled() -> bool:
            return all(option.active or option.state == rfc2217.INACTIVE for option in self._mandatory)

        with self._answered:
            if not self._answered.wait_for(settled, self._network_timeout):
                raise SerialException(f"{self._port} does not seem to speak RFC 2217: {self._mandatory!r}")

    def _reconfigure_port(self) -> None:
        if self._socket is None:
            raise SerialException("Can only operate on open ports")
        if self._write_timeout is not None:
            raise NotImplementedError("write_timeout is not supported over RFC 2217")
        if not 0 < self._baudrate < 2**32:
            raise ValueError(f"invalid baudrate: {self._baudrate!r}")
        if self._rtscts and self._xonxoff:
            raise ValueError("xonxoff and rtscts together are not supported")
        settings = self._rfc2217_port_settings
        settings["baudrate"].set(struct.pack("!I", self._baudrate))
        settings["datasize"].set(bytes((self._bytesize,)))
        settings["parity"].set(bytes((rfc2217.RFC2217_PARITY_MAP[self._parity],)))
        settings["stopsize"].set(bytes((rfc2217.RFC2217_STOPBIT_MAP[self._stopbits],)))
        for setting in settings.values():
            setting.wait(self._network_timeout)
        flow_control = (
            rfc2217.SET_CONTROL_USE_HW_FLOW_CONTROL
            if self._rtscts
            else rfc2217.SET_CONTROL_USE_SW_FLOW_CONTROL
            if self._xonxoff
            else rfc2217.SET_CONTROL_USE_NO_FLOW_CONTROL
        )
        self.rfc2217_set_control(flow_control)

    def close(self) -> None:
        self.is_open = False
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_JOIN_TIMEOUT_S)
        self._thread = self._socket = None

    # reading

    @property
    def lost(self) -> bool:
        """Whether the server has closed the connection."""
        return self._buffer.ended

    @property
    def in_waiting(self) -> int:
        """Bytes to read; 1 after the connection was lost, so that a reader notices by reading."""
        self._check_open()
        return len(self._buffer) or int(self._buffer.ended)

    def read(self, size: int = 1) -> bytes:
        """Return ``size`` bytes, fewer after ``timeout``. Raises SerialException once the server is gone."""
        self._check_open()
        data = self._buffer.take(size, self._timeout)
        if size and not data and self._buffer.ended:
            raise SerialException(f"connection to {self._port} lost")
        return data

    def reset_input_buffer(self) -> None:
        self._check_open()
        self.rfc2217_send_purge(rfc2217.PURGE_RECEIVE_BUFFER)
        self._buffer.clear()

    def _check_open(self) -> None:
        if not self.is_open:
            raise PortNotOpenError

    # the reader thread

    def _telnet_read_loop(self) -> None:
        parser = TelnetParser(
            payload=self._buffer.put,
            command=self._telnet_process_command,
            negotiate=self._on_negotiate,
            subnegotiate=self._telnet_process_subnegotiation,
        )
        connection = self._socket
        with contextlib.suppress(OSError):
            while self.is_open and (data := connection.recv(_RECEIVE_BYTES)):
                parser.feed(data)
        self._buffer.end()
        for setting in self._rfc2217_options.values():
            setting.give_up()

    def _on_negotiate(self, command: bytes, option: bytes) -> None:
        self._telnet_negotiate_option(command, option)
        with self._answered:
            self._answered.notify_all()
