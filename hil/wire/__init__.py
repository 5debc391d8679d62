# SPDX-License-Identifier: Apache-2.0
"""The console protocol: lines, their parts, packed samples."""

from hil.wire.lines import MARKER, PROTOCOL_VERSIONS, crc32_hex, format_command, parse_line, parse_scalar
from hil.wire.messages import Begin, DamagedLineError, Data, End, Hello, Message, Note, Reply, WireError

__all__ = [
    "MARKER",
    "PROTOCOL_VERSIONS",
    "Begin",
    "DamagedLineError",
    "Data",
    "End",
    "Hello",
    "Message",
    "Note",
    "Reply",
    "WireError",
    "crc32_hex",
    "format_command",
    "parse_line",
    "parse_scalar",
]
