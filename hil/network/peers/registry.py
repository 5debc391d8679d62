"""Which companion a thresholds file means by ``peer:``. Each is imported when it is first wanted."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import cast

from hil.network.peers.companion import Companion, Place
from hil.thresholds.types import PEERS

CompanionFactory = Callable[[Place], Companion]

_FACTORIES: Mapping[str, str] = {
    "iperf": "hil.network.peers.iperf.companion:IperfCompanion",
    "http": "hil.network.peers.gateway.companion:GatewayCompanion",
    "interruption": "hil.network.peers.interruption:Interruption",
    "delivery": "hil.network.peers.mqtt.delivery:DeliveryCompanion",
    "echo": "hil.network.peers.mqtt.echoing:EchoCompanion",
}
assert set(_FACTORIES) == set(PEERS), "hil.thresholds.types names the peers"


def companion_factory(peer: str) -> CompanionFactory:
    """Return what makes the companion that a thresholds file calls ``peer``, one of PEERS."""
    module, _, name = _FACTORIES[peer].partition(":")
    return cast(CompanionFactory, getattr(importlib.import_module(module), name))
