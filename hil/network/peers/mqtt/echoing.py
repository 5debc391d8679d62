# SPDX-License-Identifier: Apache-2.0
"""The companion of the bench `echo`: a peer that sends each message back, and what the round trip crosses."""

from __future__ import annotations

from collections.abc import Mapping

from hil.model import Series
from hil.network.peers.companion import Outcome, Place
from hil.network.peers.mqtt.delivery import rates_facts
from hil.network.peers.mqtt.dissecting import dissect
from hil.network.peers.mqtt.peer import MqttPeer
from hil.network.peers.mqtt.settings import Settings
from hil.wire import Note


class EchoCompanion:
    """One case, from the broker's start to its facts; the rows are the board's own."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._settings = Settings.of_echo(place.case)
        self._parts = MqttPeer(place, self._settings, "echo")

    def start(self) -> Mapping[str, str | int]:
        """Start broker, captures and the echo, and what cuts connections.

        Raises ConfigError: the rack cannot make this case. RigError: a part did not start, with its words.
        """
        return self._parts.start({})

    def note(self, note: Note) -> None:
        """The board's notes are for people."""

    def check(self) -> None:
        """Raise RigError where a part of the host's side has ended, or a connection could not be cut."""
        self._parts.check()

    def finish(self, series: Series) -> Outcome:
        """End everything, read the captures. Raises RigError: a part had ended, a capture cannot be read."""
        parts, settings = self._parts, self._settings
        broker, program = parts.running()
        moments = parts.end_faults()
        seen = parts.end()
        facts = {
            **parts.facts(seen, dissect(seen, broker, settings)),
            "echo_peer": program.description(),
            "echoed_count": program.messages(),
            "cuts_count": len(moments),
            **rates_facts(series, settings),
        }
        parts.keep_or_remove()
        return Outcome(series, facts)

    def stop(self) -> None:
        """End everything. Never raises."""
        self._parts.stop()
