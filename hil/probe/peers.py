# SPDX-License-Identifier: Apache-2.0
"""The host's side of a probe: a client at the rack's broker and an HTTP server."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import FirmwareError
from hil.network.broker import Broker as RackBroker
from hil.network.peers.gateway.program import Program
from hil.network.process import Spawner
from hil.probe import mdns
from hil.probe.http_server import FETCHED, READY
from hil.probe.mqtt_client import MESSAGE, SENT, SUBSCRIBED
from hil.session.console import printable

START_TIMEOUT_S = 20.0
TOPICS_TOLD = 5

_CONNECTED = re.compile(r"New client connected from \S+ as (\S+) ")
_REFUSED = re.compile(
    r"(Client \S+ disconnected, not authorised|OpenSSL Error|Bad username|protocol error)[^\n]*"
)
_PUBLISHED = re.compile(r"Received PUBLISH from (\S+) \([^']*'([^']*)'")


@dataclass(frozen=True)
class PeerMessage:
    """A message as the host's client had it; ``time_ns`` is CLOCK_MONOTONIC, ``wall_ns`` the time of day."""

    time_ns: int
    wall_ns: int
    topic: str
    payload: bytes
    retained: bool


def _message(line: Mapping[str, Any]) -> PeerMessage:
    payload = base64.b64decode(line["payload"])
    return PeerMessage(line["time_ns"], line["wall_ns"], line["topic"], payload, bool(line["retain"]))


@dataclass(frozen=True)
class Sent:
    planned_ns: int
    sent_ns: int


@dataclass(frozen=True)
class Asking:
    """Requests that the client publishes: ``count`` of them, one each ``interval_us``."""

    topic: str
    payload: str
    count: int
    interval_us: int


class BrokerSession:
    """A client at the rack's broker. ``folder`` takes its lines; end it by stop()."""

    def __init__(
        self,
        spawner: Spawner,
        rack: RackBroker,
        topic: str,
        folder: Path,
        board: str,
        asking: Asking | None = None,
    ) -> None:
        options = ["--address", rack.address, "--port", str(rack.ports.tcp), "--topic", topic]
        options += ["--lines", str(folder.resolve() / "client.jsonl")]
        if asking:
            options += ["--ask-topic", asking.topic, "--payload", asking.payload]
            options += ["--count", str(asking.count), "--interval-us", str(asking.interval_us)]
        self._rack = rack
        self._board = board
        self._asking = asking
        self._taken = 0
        self._program = Program(
            spawner,
            "The host's client at the broker",
            "hil.probe.mqtt_client",
            options,
            folder.resolve(),
            "client",
        )
        self._program.await_line(SUBSCRIBED, timeout_s=START_TIMEOUT_S)

    def check(self) -> None:
        """Raise RigError where the client has ended."""
        self._program.check()

    def stop(self) -> None:
        self._program.stop()

    def new_messages(self) -> Sequence[PeerMessage]:
        """Return what came since the last call; what the broker had kept from before is left out."""
        lines = self._program.lines.of(MESSAGE)
        new, self._taken = lines[self._taken :], len(lines)
        found = [_message(line) for line in new]
        return [message for message in found if not message.retained]

    @property
    def all_sent(self) -> bool:
        return self._asking is not None and len(self._program.lines.of(SENT)) == self._asking.count

    @property
    def last_sent(self) -> float:
        """When the last request went out, by time.monotonic()."""
        lines = self._program.lines.of(SENT)
        return lines[-1]["sent_ns"] / 1e9 if lines else time.monotonic()

    def requests(self) -> Sequence[Sent]:
        return [Sent(line["planned_ns"], line["sent_ns"]) for line in self._program.lines.of(SENT)]

    def nothing_came(self, topic: str, waited_s: float, said: str = "") -> FirmwareError:
        """Return the error for a topic to which nothing was published, with what the broker saw instead and
        what the board ``said`` of it."""
        return FirmwareError(
            f"Board {self._board}: nothing came on {topic} within {waited_s:g} s. "
            f"{self._what_it_saw()}{said}",
            log=str(self._rack.log_path),
            next_step="read its console log; hil.toml [given] tells it the broker's address.",
        )

    def _what_it_saw(self) -> str:
        text = (
            self._rack.log_path.read_bytes().decode(errors="replace") if self._rack.log_path.exists() else ""
        )
        clients = [name for name in _CONNECTED.findall(text) if not name.startswith("hil-")]
        refused = [printable(found[0]) for found in _REFUSED.finditer(text)]
        if not clients:
            said = f"; it refused: {refused[-1]}" if refused else ""
            return f"The broker saw no client but the rack's own{said}."
        topics = dict.fromkeys(
            name for client, name in _PUBLISHED.findall(text) if not client.startswith("hil-")
        )
        told = ", ".join(map(repr, list(topics)[:TOPICS_TOLD])) or "nothing"
        who = ", ".join(dict.fromkeys(map(printable, clients)))
        return f"The broker saw {who}, which published to {printable(told)}."


class Announcer:
    """Answers mDNS for the rack's broker by ``name``. ``folder`` takes its lines; end it by stop()."""

    def __init__(self, spawner: Spawner, rack: RackBroker, name: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        options = ["--name", name, "--address", rack.address, "--port", str(rack.ports.tcp)]
        options += ["--lines", str(folder.resolve() / "mdns.jsonl")]
        self._program = Program(
            spawner, "The rack's mDNS", "hil.probe.mdns", options, folder.resolve(), "mdns"
        )
        self._program.await_line(mdns.READY, timeout_s=START_TIMEOUT_S)

    def stop(self) -> None:
        self._program.stop()


@dataclass(frozen=True)
class Fetched:
    began_ns: int
    done_ns: int
    size_bytes: int


class Server:
    """The rack's HTTP server of one file. End it by stop()."""

    def __init__(self, spawner: Spawner, address: str, file: Path, folder: Path) -> None:
        self.size_bytes = file.stat().st_size
        options = ["--address", address, "--file", str(file.resolve())]
        options += ["--lines", str(folder.resolve() / "server.jsonl")]
        self._program = Program(
            spawner, "The host's HTTP server", "hil.probe.http_server", options, folder.resolve(), "server"
        )
        port = self._program.await_line(READY, timeout_s=START_TIMEOUT_S)["port"]
        self.url = f"http://{address}:{port}/{file.name}"

    def check(self) -> None:
        """Raise RigError where the server has ended."""
        self._program.check()

    def stop(self) -> None:
        self._program.stop()

    def fetched(self) -> Fetched | None:
        """Return the first fetch that came to its end, None where there is none yet."""
        lines = self._program.lines.of(FETCHED)
        return Fetched(lines[0]["began_ns"], lines[0]["done_ns"], lines[0]["size_bytes"]) if lines else None
