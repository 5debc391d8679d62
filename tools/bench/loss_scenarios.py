# SPDX-License-Identifier: Apache-2.0
"""What is done to a virtual board's messages so that they are lost at each of the six points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hil.network.ledger.points import Owner

COMMON: dict[str, int | str] = {
    "count": 1100,
    "warmup": 10,
    "interval_us": 4000,
    "schedule": "periodic",
    "payload_bytes": 128,
    "timeout_ms": 4000,
    "network_timeout_ms": 1000,
    "reconnect_ms": 300,
    "fault_after_ms": 1000,
}
LONG: dict[str, int | str] = {"count": 3000}  # several faults of a case


@dataclass(frozen=True)
class Down:
    """A hop that the bench itself takes away: when after the first message that came, for how long, and how
    often, each from the last one's beginning. While the wire is, the broker's host resets the connection."""

    hop: Literal["air", "wire"]
    after_ms: int
    for_ms: int
    every_ms: int


@dataclass(frozen=True)
class Scenario:
    """``takes`` is who loses what the board has transmitted and the broker's host never had; None where more
    than one may. With ``down`` a hop is down besides, of which the case knows nothing."""

    name: str
    takes: Owner | None
    parameters: dict[str, int | str]
    down: Down | None = None


SCENARIOS = (
    Scenario(
        "air down until the client gives up, QoS 0",
        Owner.ACCESS_POINT,
        {"qos": 0, "fault": "blackout", "fault_ms": 2500, "fault_every_ms": 4500, **LONG},
    ),
    Scenario(
        "air down, small outbox, QoS 1",
        Owner.ACCESS_POINT,
        {"qos": 1, "fault": "blackout", "fault_ms": 2500, "outbox_limit_bytes": 4096},
    ),
    Scenario(
        "air down, connection cut meanwhile, QoS 0",
        Owner.ACCESS_POINT,
        {"qos": 0, "fault": "cut", "fault_every_ms": 2000, "network_timeout_ms": 3000, **LONG},
        down=Down("air", after_ms=900, for_ms=500, every_ms=2000),
    ),
    Scenario(
        "frames dropped before the broker, QoS 0",
        Owner.BROKER_IN,
        {"qos": 0, "fault": "wire", "fault_ms": 2500, "fault_every_ms": 4500, **LONG},
    ),
    Scenario(
        "frames dropped before the broker, connection reset meanwhile, QoS 0",
        None,
        {"qos": 0, "reconnect_ms": 150, **LONG},
        down=Down("wire", after_ms=500, for_ms=300, every_ms=700),
    ),
    Scenario(
        "air that loses frames, connection cut, QoS 0",
        None,
        {
            "qos": 0,
            "fault": "cut",
            "fault_after_ms": 200,
            "fault_every_ms": 350,
            "air": "crowded",
            "reconnect_ms": 100,
            "interval_us": 2000,
            "count": 4000,
        },
    ),
    Scenario(
        "subscriber away, short queue, QoS 1",
        Owner.BROKER_OUT,
        {"qos": 1, "fault": "subscriber_away", "fault_ms": 2000, "broker_queue": 10},
    ),
    Scenario(
        "subscriber throws away, QoS 0",
        Owner.SUBSCRIBER,
        {"qos": 0, "fault": "subscriber_drop"},
    ),
)
