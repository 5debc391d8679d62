# SPDX-License-Identifier: Apache-2.0
"""A capture that others made: which of its connections are wanted, and what all of it comes to."""

from __future__ import annotations

import difflib
import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError
from hil.network.dissect.bundling import Bundling, bundling_between
from hil.network.dissect.connections import Connection, RoundTrips, connections_of, round_trips_of
from hil.network.dissect.overhead import Overhead, overhead_of
from hil.network.dissect.segments import MqttPorts, Segment, read_capture
from hil.network.dissect.symptoms import count_symptoms
from hil.network.dissect.tshark import protocols

_NAMED_PORTS = 5
_P95_FROM = 20  # below, the highest of all is beyond it


@dataclass(frozen=True)
class Wanted:
    """Whose connections are looked at: those of servers' ``ports``, else of the servers with which
    ``dissector`` is spoken, and so what failed to connect to them too.

    What is on ``ports.plain`` that dissector reads, whatever tshark would take it for.
    """

    ports: MqttPorts
    dissector: str = "mqtt"

    @property
    def numbers(self) -> tuple[int, ...]:
        return (*self.ports.plain, *self.ports.tls)


@dataclass(frozen=True)
class Foreign:
    """``segments`` and ``connections`` are the wanted ones, ``others`` the rest. ``headless_count`` frames
    are in neither, because their headers could not be read."""

    path: Path
    wanted: Wanted
    segments: Sequence[Segment]
    connections: Sequence[Connection]
    others: Sequence[Connection]
    headless_count: int

    @property
    def unreadable(self) -> list[Segment]:
        """The frames whose packets could not be read."""
        return [one for one in self.segments if one.unreadable]

    @property
    def duration_us(self) -> int:
        times = [one.time_us for one in self.segments]
        return max(times) - min(times)

    def symptoms(self) -> Mapping[str, int]:
        return count_symptoms(self.segments)

    def overhead(self) -> Overhead:
        return overhead_of(self.segments)

    def round_trips(self) -> list[RoundTrips]:
        return round_trips_of(self.connections)

    def bundling(self) -> tuple[Bundling, Bundling]:
        """Return what clients sent, and what servers did."""
        client, server = (
            bundling_between(self.connections, by_client=by_client) for by_client in (True, False)
        )
        return client, server

    def to_json(self) -> dict[str, Any]:
        """Return all of it, each fact by the name that a run's record has for it."""
        client, server = self.bundling()
        return {
            "file": self.path.name,
            "dissector": self.wanted.dissector,
            "began_us": min(one.time_us for one in self.segments),
            "duration_us": self.duration_us,
            "connections": [_connection_json(one) for one in self.connections],
            "other_connections_count": len(self.others),
            "other_frames_count": sum(len(one.segments) for one in self.others),
            "headless_count": self.headless_count,
            "unreadable_count": len(self.unreadable),
            "unreadable_frames": [one.number for one in self.unreadable],
            **self.symptoms(),
            **self.overhead().facts(),
            **client.facts("client_"),
            **server.facts("server_"),
            "round_trips": [_round_trips_json(one) for one in self.round_trips()],
        }


def read_foreign(path: Path, wanted: Wanted, *, key_log: Path | None = None) -> Foreign:
    """Read a capture and choose its connections.

    Raises ConfigError: no capture, no keys, an unknown dissector (the nearest ones), no such connection (the
    servers that there are); RigError: tshark is missing.
    """
    if key_log is not None and not key_log.is_file():  # tshark reads on without
        raise ConfigError(f"{key_log}: there is no such file, so nothing inside TLS could be read.")
    if wanted.dissector not in (known := protocols()):
        near = ", ".join(difflib.get_close_matches(wanted.dissector, known, n=3))
        raise ConfigError(
            f"tshark has no dissector {wanted.dissector!r}{near and f'; the nearest: {near}'}.",
            next_step="tshark -G protocols lists them; the name is in the third column.",
        )
    reading = read_capture(path, wanted.ports, dissector=wanted.dissector, key_log=key_log)
    found = connections_of(reading.segments, wanted.numbers)
    if not found:
        raise ConfigError(
            f"{path}: it holds no TCP segment that can be read.",
            next_step="what a Wi-Fi sniffer took is encrypted: capture behind the access point.",
        )
    spoken = {one.server for one in found if one.stream in reading.spoken}
    chosen: list[Connection] = []
    others: list[Connection] = []
    for one in found:
        is_wanted = one.server[1] in wanted.numbers if wanted.numbers else one.server in spoken
        (chosen if is_wanted else others).append(one)
    if not chosen:
        raise _nothing(path, wanted, others)
    streams = {one.stream for one in chosen}
    segments = [one for one in reading.segments if one.stream in streams]
    return Foreign(path, wanted, segments, chosen, others, len(reading.headless))


def servers_of(connections: Sequence[Connection]) -> str:
    """Name the servers' ports that have most connections: "443 (2 connections), 22 (1)"."""
    counts = Counter(one.server[1] for one in connections).most_common()
    words = [
        f"{port} ({count} connection{'' if count == 1 else 's'})" for port, count in counts[:_NAMED_PORTS]
    ]
    return ", ".join([*words, *(["…"] if len(counts) > _NAMED_PORTS else [])])


def percentile_us(times_us: Sequence[int], share: float) -> int | None:
    """Return the value that ``share`` of the times do not exceed (nearest rank); None where too few tell."""
    if not times_us or (share > 0.5 and len(times_us) < _P95_FROM):
        return None
    return sorted(times_us)[math.ceil(share * len(times_us)) - 1]


def _nothing(path: Path, wanted: Wanted, others: Sequence[Connection]) -> ConfigError:
    what = (
        f"no connection has port {' or '.join(map(str, wanted.numbers))}"
        if wanted.numbers
        else f"tshark finds no {wanted.dissector} in its {len(others)} connection{'s'[: len(others) > 1]}"
    )
    command = f"hil dissect {shlex.quote(str(path))} --port {others[0].server[1]}"
    return ConfigError(
        f"{path}: {what}. Servers' ports in it: {servers_of(others)}.",
        next_step=f"name the server's: {command}; for MQTT inside TLS --tls-port PORT --keys FILE.",
    )


def _connection_json(one: Connection) -> dict[str, Any]:
    return {
        "client": one.client[0],
        "client_port": one.client[1],
        "server": one.server[0],
        "server_port": one.server[1],
        "from_start": one.from_start,
        "frames_count": len(one.segments),
        "frames_bytes": sum(segment.frame_bytes for segment in one.segments),
    }


def _round_trips_json(one: RoundTrips) -> dict[str, Any]:
    return {
        "name": one.name,
        "asked_by": "client" if one.by_client else "server",
        "count": len(one.times_us),
        "open_count": one.open_count,
        "p50_us": percentile_us(one.times_us, 0.5),
        "p95_us": percentile_us(one.times_us, 0.95),
        "max_us": max(one.times_us, default=None),
    }
