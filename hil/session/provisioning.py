# SPDX-License-Identifier: Apache-2.0
"""What a board is told at each boot, as commands, and what of it must not be seen in a log."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence

from hil.session.console import MASK
from hil.wire import crc32_hex

PIECE_BYTES = 480  # 640 characters of base64: a command line has at most 1023
SECRET_FIELDS = frozenset({"ca_pem", "client_cert_pem", "client_key_pem", "ssid", "psk", "mqtt_password"})
# Masked wherever they turn up. An SSID is not among them: it may be a word of every other log line.
MASKED_FIELDS = frozenset({"client_key_pem", "psk", "mqtt_password"})
# A firmware older than these does not know them. A bench that needs one says that it was not told.
LATER_FIELDS = frozenset(
    {
        "broker_password_port",
        "mqtt_username",
        "mqtt_password",
        "peer_host",
        "peer_name",
        "dns_host",
        "peer_port",
        "peer_tls_port",
    }
)

Value = str | bytes | int


def to_bytes(value: Value) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def secrets_of(field: str, value: Value) -> tuple[str, ...]:
    """Return the texts to mask in everything that is logged."""
    return (to_bytes(value).decode("latin-1"),) if field in MASKED_FIELDS else ()


def commands_of(field: str, value: Value) -> Iterator[tuple[str, str, int, str]]:
    """Yield the words of the commands that provision one field."""
    data = to_bytes(value)
    for offset in range(0, len(data), PIECE_BYTES):
        piece = base64.b64encode(data[offset : offset + PIECE_BYTES]).decode()
        yield "provision", field, offset, piece
    yield "provision-end", field, len(data), crc32_hex(data)


def shown(args: Sequence[object]) -> str:
    """Return a ``provision`` command as a log may show it."""
    field, offset, piece = args
    return f"provision {field} {offset} {MASK if field in SECRET_FIELDS else piece}"
