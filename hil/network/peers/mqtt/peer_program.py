# SPDX-License-Identifier: Apache-2.0
"""Subscriber and echo as programs on the rack's host, which can be halted for a while."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hil.network.peers.companion import Place
from hil.network.peers.gateway.program import Program
from hil.network.peers.mqtt.client import ENDED, FAILED, FIRST, SUBSCRIBED, words
from hil.network.peers.mqtt.settings import Settings

START_TIMEOUT_S = 20.0


class PeerProgram(Program):
    """``name`` is the module's and that of its files in the case's folder."""

    def __init__(
        self, place: Place, settings: Settings, name: str, port: int, options: Mapping[str, object]
    ) -> None:
        folder = place.folder.resolve()
        arguments = words(
            address=place.host_address,
            port=port,
            topic=settings.topic,
            client_id=f"hil-{name}",
            nodelay=int(settings.peer_nodelay),
            lines=folder / f"{name}.jsonl",
            **options,
        )
        self._name = name
        self._nodelay = settings.peer_nodelay
        super().__init__(
            place.spawner, f"The host's {name}", f"hil.network.peers.mqtt.{name}", arguments, folder, name
        )

    def await_subscribed(self) -> None:
        """Wait for SUBACK. Raises RigError with its last words."""
        self.await_line(SUBSCRIBED, timeout_s=START_TIMEOUT_S)

    def has_first(self) -> bool:
        """True where a message has come. For one thread only."""
        return bool(self.lines.of(FIRST, FAILED))

    def description(self) -> str:
        """Return what a record says of it."""
        start = self.lines.of("start")[0]
        sending = "TCP_NODELAY" if self._nodelay else "Nagle's algorithm"
        return f"host: paho-mqtt {start['paho_version']}, {sending}"

    def messages(self) -> int | None:
        """Return how many messages it had, once it has stopped; None where it was killed."""
        ended = self.lines.of(ENDED)
        return int(ended[-1]["messages"]) if ended else None

    @contextmanager
    def halted(self) -> Iterator[None]:
        """Keep it from running meanwhile; its sockets stay open and fill."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)
