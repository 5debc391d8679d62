# SPDX-License-Identifier: Apache-2.0
"""The companion of the bench `echo`: a peer that sends each message back, and what the round trip crosses."""

from __future__ import annotations

from hil.model import Series
from hil.network.peers.companion import Observed, Place
from hil.network.peers.mqtt.delivery import rates_facts
from hil.network.peers.mqtt.dissecting import dissect
from hil.network.peers.mqtt.peer import MqttPeer
from hil.network.peers.mqtt.settings import Settings


class EchoCompanion(MqttPeer):
    """One case, from the broker's start to its facts; the rows are the board's own."""

    def __init__(self, place: Place) -> None:
        super().__init__(place, Settings.of_echo(place.case), "echo")

    def finish(self, series: Series) -> Observed:
        """End everything, read the captures. Raises RigError: a part had ended, a capture cannot be read."""
        broker, program = self.running()
        moments = self.end_faults()
        seen = self.end()
        facts = {
            **self.facts(seen, dissect(seen, broker, self._settings)),
            "echo_peer": program.description(),
            "echoed_count": program.messages(),
            "cuts_count": len(moments),
            **rates_facts(series, self._settings),
        }
        self.keep_or_remove()
        return Observed(series, facts)
