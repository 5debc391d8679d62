# SPDX-License-Identifier: Apache-2.0
"""Coverage-guided fuzzing of the host's side of the protocol.

Run it for as long as you like: ``python -m tests.session.fuzz_wire [libFuzzer options] [corpus folder]``.
The first byte of an input chooses what the rest is: a line as it is, a line that is given the right checksum
(so that the fuzzer gets past it), or packed columns.
"""

from __future__ import annotations

import sys
import zlib

import atheris

with atheris.instrument_imports():
    from hil import wire
    from hil.session.transfer import Transfer
    from hil.wire import packing


def fuzz_line(data: bytes) -> None:
    try:
        message = wire.parse_line(data)
    except wire.WireError:
        return
    content = data.decode("latin-1").rstrip("\r\n")
    if message is None:
        assert wire.MARKER not in content
        return
    marked = content[content.rfind(wire.MARKER) :]
    body, _, crc = marked.rpartition(" *")
    assert f"{zlib.crc32(body.encode('latin-1')):08x}" == crc


def fuzz_content(data: bytes) -> None:
    content = b"@hil 1 " + data.replace(b"@hil ", b"").rstrip(b"\r\n")
    line = content + f" *{zlib.crc32(content):08x}".encode()
    try:
        message = wire.parse_line(line)
    except wire.DamagedLineError:
        raise AssertionError("a right checksum was called wrong") from None
    except wire.WireError:
        return
    assert message is not None
    if isinstance(message, wire.Begin | wire.End):
        transfer = Transfer(message.transfer)
        transfer.add(message)
        assert not transfer.complete


def fuzz_packing(data: bytes) -> None:
    if len(data) < 2:
        return
    columns, rows, packed = data[0] % 8 + 1, data[1], data[2:]
    try:
        unpacked = packing.unpack_columns(packed, columns=columns, rows=rows)
    except ValueError:
        return
    assert packing.pack_columns(unpacked) == packed


_TARGETS = (fuzz_line, fuzz_content, fuzz_packing)


def fuzz(data: bytes) -> None:
    if data:
        _TARGETS[data[0] % len(_TARGETS)](data[1:])


if __name__ == "__main__":
    atheris.Setup(sys.argv, fuzz)
    atheris.Fuzz()
