# SPDX-License-Identifier: Apache-2.0
"""What a case of the benches `delivery` and `echo` asks of the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from hil.model import Case

Transport = Literal["tcp", "tls", "mtls", "password"]
Persistence = Literal["off", "on", "each"]

RACK_AIR = "rack"  # the air stays as the run has it
WHOLE_CASE_FAULTS = ("none", "slow_disk", "subscriber_drop")  # they have neither beginning nor end
DROP_EVERY = 10


@dataclass(frozen=True)
class AirChange:
    """What a case changes of the board's link, one way each; None leaves what the profile says.

    A rate of 0 and a loss of 0 are left as they are. ``profile`` is RACK_AIR where the run's stays.
    """

    profile: str = RACK_AIR
    delay_us: int | None = None
    rate_up_kbit: int | None = None
    rate_down_kbit: int | None = None
    loss_up_ppm: int | None = None
    loss_down_ppm: int | None = None
    bursts: bool = False

    @property
    def changes(self) -> bool:
        return self != AirChange(bursts=self.bursts)


@dataclass(frozen=True)
class FaultPlan:
    """When and for how long, from the first message that came to the subscriber; 0 ``every_s`` is once."""

    kind: str
    after_s: float
    length_s: float
    every_s: float

    @property
    def timed(self) -> bool:
        return self.kind not in WHOLE_CASE_FAULTS


@dataclass(frozen=True)
class Settings:
    """The host's parameters of a case, and those of the board that say what is to be seen."""

    bench: str
    transport: Transport
    qos: int
    interval_us: int
    periodic: bool
    broker_nodelay: bool
    peer_nodelay: bool
    broker_inflight: int
    broker_queue: int
    persistence: Persistence
    air: AirChange
    fault: FaultPlan

    @property
    def topic(self) -> str:
        """What the host's client subscribes to: every board's."""
        return f"hil/+/{self.bench}"

    @property
    def tls(self) -> bool:
        return self.transport in ("tls", "mtls")

    @classmethod
    def of_delivery(cls, case: Case) -> Settings:
        """Read the parameters of a case of `delivery`; the thresholds file has checked their ranges."""
        kind = str(case.parameters["fault"])
        fault = FaultPlan(
            kind,
            _number(case, "fault_after_ms") / 1e3,
            0.0 if kind == "cut" else _number(case, "fault_ms") / 1e3,  # a cut has no length
            _number(case, "fault_every_ms") / 1e3,
        )
        air = AirChange(str(case.parameters["air"]))
        return cls._of(case, _number(case, "subscriber_nodelay"), _number(case, "broker_queue"), air, fault)

    @classmethod
    def of_echo(cls, case: Case) -> Settings:
        """Read the parameters of a case of `echo`; a connection that is cut every so often is its fault."""
        every_s = _number(case, "cut_every_ms") / 1e3
        delay_us = _number(case, "delay_us")
        air = AirChange(
            profile=str(case.parameters["air"]),
            delay_us=delay_us if delay_us >= 0 else None,
            rate_up_kbit=_number(case, "rate_up_kbit") or None,
            rate_down_kbit=_number(case, "rate_down_kbit") or None,
            loss_up_ppm=_number(case, "loss_up_ppm") or None,
            loss_down_ppm=_number(case, "loss_down_ppm") or None,
            bursts=case.parameters["loss_pattern"] == "bursts",
        )
        fault = FaultPlan("cut" if every_s else "none", every_s, 0.0, every_s)
        return cls._of(case, _number(case, "echo_nodelay"), 0, air, fault)

    @classmethod
    def _of(cls, case: Case, peer_nodelay: int, queue: int, air: AirChange, fault: FaultPlan) -> Settings:
        return cls(
            bench=case.bench,
            transport=cast(Transport, str(case.parameters["transport"])),
            qos=_number(case, "qos"),
            interval_us=_number(case, "interval_us"),
            periodic=case.parameters["schedule"] == "periodic",
            broker_nodelay=bool(_number(case, "broker_nodelay")),
            peer_nodelay=bool(peer_nodelay),
            broker_inflight=_number(case, "broker_inflight"),
            broker_queue=queue,
            persistence=cast(Persistence, str(case.parameters["persistence"])),
            air=air,
            fault=fault,
        )


def _number(case: Case, name: str) -> int:
    return int(case.parameters[name] or 0)
