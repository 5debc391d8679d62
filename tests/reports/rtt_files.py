# SPDX-License-Identifier: Apache-2.0
"""The files that the requester leaves, read back as whole numbers and texts."""

from __future__ import annotations

import csv
from pathlib import Path

from hil.network.peers.gateway.joining import PublishedRow

PUBLISHED_COLUMNS = (
    "phase",
    "phase_read",
    "iteration",
    "request_id",
    "trigger_ms",
    "response_timestamp_ms",
    "response_received_ms",
    "rtt_payload_ms",
    "rtt_receive_ms",
    "status",
)
_TEXTS = {"phase", "request_id", "status"}


def read_rtt_csv(path: Path) -> list[PublishedRow]:
    """Read an rtt.csv; its columns are those of the published benchmark, in their order."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        assert tuple(reader.fieldnames or ()) == PUBLISHED_COLUMNS
        return [
            PublishedRow(**{name: _value(name, text) for name, text in row.items()})  # type: ignore[arg-type]
            for row in reader
        ]


def _value(name: str, text: str) -> str | int | None:
    return text if name in _TEXTS else int(text) if text else None
