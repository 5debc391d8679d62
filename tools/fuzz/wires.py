# SPDX-License-Identifier: Apache-2.0
"""The readers of what comes over a wire: the console, the serial port from both ends, a capture."""

from __future__ import annotations

import asyncio
import struct
import tempfile
import types
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tools.fuzz.target import Fuzz, Target, instrumented, of_file, one_of

# the console


def _console() -> Fuzz:
    """The first byte says what the rest is: a line as it is, one that is given the right checksum (so that
    the fuzzer gets past it), or packed columns."""
    with instrumented():
        from hil import wire
        from hil.session import transfer
        from hil.wire import packing

    return one_of(_line(wire), _with_its_checksum(wire, transfer.Transfer), _columns(packing))


def _line(wire: Any) -> Fuzz:
    def fuzz(data: bytes) -> None:
        try:
            message = wire.parse_line(data)
        except wire.WireError:
            return
        content = data.decode("latin-1").rstrip("\r\n")
        if message is None:
            assert wire.MARKER not in content
            return
        body, _, crc = content[content.rfind(wire.MARKER) :].rpartition(" *")
        assert f"{zlib.crc32(body.encode('latin-1')):08x}" == crc

    return fuzz


def _with_its_checksum(wire: Any, transfer: Any) -> Fuzz:
    def fuzz(data: bytes) -> None:
        content = b"@hil 1 " + data.replace(b"@hil ", b"").rstrip(b"\r\n")
        try:
            message = wire.parse_line(content + f" *{zlib.crc32(content):08x}".encode())
        except wire.DamagedLineError:
            raise AssertionError("a right checksum was called wrong") from None
        except wire.WireError:
            return
        assert message is not None
        if isinstance(message, wire.Begin | wire.End):
            of_it = transfer(message.transfer)
            of_it.add(message)
            assert not of_it.complete

    return fuzz


def _columns(packing: Any) -> Fuzz:
    def fuzz(data: bytes) -> None:
        if len(data) < 2:
            return
        count, rows, packed = data[0] % 8 + 1, data[1], data[2:]
        try:
            unpacked = packing.unpack_columns(packed, columns=count, rows=rows)
        except ValueError:
            return
        assert packing.pack_columns(unpacked) == packed

    return fuzz


def _console_seeds() -> Iterator[bytes]:
    from hil.wire import packing
    from tests.session.test_wire import example_lines, marked

    for line in [*example_lines(), marked("@hil 1 15 N 4 ready port=5001 text=two%20words")]:
        if line.startswith("@hil"):
            yield b"\0" + line.encode()
            yield b"\1" + line.removeprefix("@hil 1 ").rpartition(" *")[0].encode()
    yield b"\2\1\3" + packing.pack_columns([[1, 2, 3], [5, 0, packing.VALUE_MAX]])


# the serial port


def _rfc2217_client() -> Fuzz:
    """Rule: however the stream is cut into pieces, it means the same."""
    with instrumented():
        from hil.boards.serial_url.protocol_fastrfc2217 import TelnetParser

    def events(pieces: Sequence[bytes]) -> list[tuple[str, bytes]]:
        found: list[tuple[str, bytes]] = []

        def payload(data: bytes) -> None:
            if found and found[-1][0] == "payload":
                data = found.pop()[1] + data
            found.append(("payload", data))

        parser = TelnetParser(
            payload=payload,
            command=lambda code: found.append(("command", code)),
            negotiate=lambda code, option: found.append(("negotiate", code + option)),
            subnegotiate=lambda option: found.append(("subnegotiate", option)),
        )
        for piece in pieces:
            parser.feed(piece)
        return found

    def fuzz(data: bytes) -> None:
        assert events([data]) == events([bytes([byte]) for byte in data])

    return fuzz


def _rfc2217_seeds() -> Iterator[bytes]:
    yield b"\xff\xfd\x2c\xff\xfb\x00hello\xff\xff\xff\xfa\x2c\x65\x00\x01\xc2\x00\xff\xf0"
    yield b"\xff\xfa\x2c\x01\x00\x00\x96\x00\xff\xf0\xff\xfa\x2c\x05\x08\xff\xf0\xff\xfa\x2c\x05\x0b\xff\xf0"


def _rfc2217_server() -> Fuzz:
    """Rule: a client that sends anything at all does not bring the board's adapter down."""
    with instrumented():
        from hil.virtual.board import uart

    circuit = types.SimpleNamespace(dtr=False, rts=False, set_lines=lambda **_lines: None)

    def fuzz(data: bytes) -> None:
        got: list[bytes] = []
        cable = types.SimpleNamespace(host=None, receive=got.append, on_drained=lambda: None)
        board = types.SimpleNamespace(circuit=circuit, cable=cable, unplugged=False)
        server = uart.UartServer(board, None, lambda _: None)  # type: ignore[arg-type]
        client = uart._Client(server)
        client.connection_made(_Unread())
        client.data_received(data)
        assert sum(map(len, got)) <= len(data)

    return fuzz


class _Unread(asyncio.Transport):
    """A connection whose other end reads nothing."""

    def is_closing(self) -> bool:
        return False

    def write(self, data: object) -> None: ...

    def abort(self) -> None: ...

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_extra_info(self, _name: str, _default: object = None) -> object:
        return types.SimpleNamespace(setsockopt=lambda *_: None)

    def get_write_buffer_size(self) -> int:
        return 0


def _loader() -> Fuzz:
    """Rule: whatever the serial loader is sent, it answers or keeps silent, and nothing leaves its flash."""
    with instrumented():
        from hil.virtual.board import slip
        from hil.virtual.board.chips import CHIPS
        from hil.virtual.board.faults import ActiveFaults
        from hil.virtual.board.flash import NorFlash
        from hil.virtual.board.flash_commands import LoaderActions
        from hil.virtual.board.loader import SerialLoader

    flash = NorFlash(Path(tempfile.mkdtemp()) / "flash.bin", 4 << 20)
    chip = CHIPS["esp32"]
    actions = LoaderActions(
        transmit=lambda _: None,
        baud=lambda: 115200,
        set_baud=lambda _: None,
        restart=lambda _: None,
        set_watchdog=lambda _: None,
        disconnect=lambda: None,
    )

    def fuzz(data: bytes) -> None:
        """Each input is packets: a byte for the command, one for the length, content; framed and summed."""
        loader = SerialLoader(chip, flash, bytes(6), ActiveFaults(), actions)
        loader.stub = bool(data[:1] and data[0] & 1)
        at = 1
        while at + 2 <= len(data):
            op, length = data[at], data[at + 1]
            content = data[at + 2 : at + 2 + length]
            at += 2 + length
            checksum = 0xEF
            for byte in content[16:]:
                checksum ^= byte
            loader.feed(slip.encode(struct.pack("<BBHI", 0, op, len(content), checksum) + content))
        loader.feed(data)

    return fuzz


def _loader_seeds() -> Iterator[bytes]:
    def packet(op: int, content: bytes) -> bytes:
        return bytes([op, len(content)]) + content

    block = zlib.compress(bytes(64))
    sync = packet(0x08, b"\x07\x07\x12\x20" + b"\x55" * 32)
    yield b"\0" + sync + packet(0x0A, struct.pack("<I", 0x40001000)) + packet(0x06, struct.pack("<2I", 0, 1))
    yield b"\0" + packet(0x09, struct.pack("<4I", 0x3FF42000, 0x9F, 0xFFFFFFFF, 0)) + packet(0x14, b"")
    begin = struct.pack("<4I", 64, 1, 64, 0x10000)
    yield b"\1" + packet(0x02, begin) + packet(0x03, struct.pack("<4I", 64, 0, 0, 0) + bytes(64))
    yield b"\1" + packet(0x10, begin) + packet(0x11, struct.pack("<4I", len(block), 0, 0, 0) + block)
    yield (
        b"\1"
        + packet(0x13, struct.pack("<4I", 0x1000, 64, 0, 0))
        + packet(0xD2, struct.pack("<4I", 0, 64, 64, 1))
    )
    yield (
        b"\1" + packet(0xD1, struct.pack("<2I", 0x1000, 0x1000)) + packet(0xD0, b"") + packet(0x0F, bytes(8))
    )


# a capture


def _capture() -> Fuzz:
    """Rule: whatever a capture holds, tshark's words about it are read, or the capture is refused."""
    with instrumented():
        from hil.network.dissect.overhead import overhead_of
    from hil.network.dissect.segments import MqttPorts, read_segments
    from hil.network.dissect.symptoms import count_symptoms

    def read(path: Path) -> None:
        segments = read_segments(path, MqttPorts(plain=(1883,), tls=(8883,)))
        count_symptoms(segments)
        overhead_of(segments, board="10.0.0.1")

    return of_file("capture.pcap", read)


def _capture_seeds() -> Iterator[bytes]:
    """A connection with CONNECT, PUBLISH and their answers, as pcap (LINKTYPE_RAW)."""
    said = (
        (True, 0x02, b""),
        (False, 0x12, b""),
        (True, 0x18, b"\x10\x0e\0\x04MQTT\x04\x02\0\x3c\0\x02b1"),
        (False, 0x18, b"\x20\x02\0\0"),
        (True, 0x18, b"\x32\x0b\0\x03a/b\0\x01data"),
        (False, 0x18, b"\x40\x02\0\x01"),
        (True, 0x11, b"\xe0\0"),
    )
    numbers = {True: 1000, False: 5000}
    capture = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    for time_us, (from_client, flags, payload) in enumerate(said, start=1):
        acknowledged = 0 if flags == 0x02 else numbers[not from_client]
        packet = _packet(from_client, flags, payload, numbers[from_client], acknowledged)
        numbers[from_client] += len(payload) + bool(flags & 0x03)
        capture += struct.pack("<IIII", 1, time_us, len(packet), len(packet)) + packet
    yield capture


def _packet(from_client: bool, flags: int, payload: bytes, number: int, acknowledged: int) -> bytes:
    """Return a segment of TCP in IPv4; tshark does not look at checksums unless it is asked to."""
    ports = (50000, 1883) if from_client else (1883, 50000)
    ends = (b"\x0a\0\0\x01", b"\x0a\0\0\x02")
    tcp = struct.pack("!HHIIBBHHH", *ports, number, acknowledged, 5 << 4, flags, 8192, 0, 0) + payload
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0)
    return ip + b"".join(ends if from_client else reversed(ends)) + tcp


TARGETS: Sequence[Target] = (
    Target("console", _console, _console_seeds, bytes_max=700),
    Target("rfc2217-client", _rfc2217_client, _rfc2217_seeds, bytes_max=300),
    Target("rfc2217-server", _rfc2217_server, _rfc2217_seeds, bytes_max=300),
    Target("loader", _loader, _loader_seeds, bytes_max=600),
    Target("capture", _capture, _capture_seeds),
)
