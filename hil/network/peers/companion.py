# SPDX-License-Identifier: Apache-2.0
"""What a bench's peer on the host is, and what it may use.

A thresholds file names its peer (``peer: iperf``); registry.py knows them. One companion serves
one case on one board, once.

Which companion a thresholds file means by ``peer:``. Each is imported when it is first wanted.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

from hil.boards.rack import Board
from hil.model import Case, Scalar, Series
from hil.network.broker import Broker
from hil.network.certificates import Certificates
from hil.network.name_server import NameServer
from hil.network.process import Spawner
from hil.thresholds.types import PEERS
from hil.virtual.air.control import Number
from hil.virtual.air.profile import AirProfile
from hil.wire import Note


class LinkAir(Protocol):
    """What a case may do to its board's link: the virtual air's control, or tc at a real access point."""

    where: str

    def show(self, board: str) -> Mapping[str, Mapping[str, Mapping[str, Number]]]: ...

    def set(self, board: str, direction: str = "both", **parameters: Number) -> None: ...

    def gap(self, board: str, **parameters: Number) -> None: ...

    def profile(self, profile: AirProfile, board: str = "all") -> None: ...

    def down(self, board: str) -> None: ...

    def up(self, board: str) -> None: ...


@dataclass(frozen=True)
class Place:
    """Where a companion works. ``folder`` is the case's own, within the run's folder: what is left there
    stays. It exists, and is removed where nothing is left in it. Copy no secret into it.

    ``board_address`` is the board's IPv4 address. ``interface`` is the host's interface that boards come in
    by; ``access_point_interface`` is the one at the access point's side of this board's air, where what came
    through the air is seen before it goes on to the broker, "" where the rack has none. ``air`` is None on a
    rack whose access point is real and shapes nothing. ``certificates`` are files as long as the run lasts,
    and so is ``secrets_dir``, a folder for whatever else is secret (TLS keys); ``peer_name`` is a name of the
    host that its server certificate holds. ``name_server`` answers it, where the run has one already; else
    whoever needs one starts it. ``sends_to`` is to be told each port of the board to which the companion
    itself connects.
    """

    case: Case
    board: Board
    board_address: str
    host_address: str
    interface: str
    access_point_interface: str
    spawner: Spawner
    broker: Broker
    certificates: Certificates
    secrets_dir: Path
    peer_name: str
    air: LinkAir | None
    folder: Path
    keep_captures: bool
    name_server: NameServer | None = None
    sends_to: Callable[[int], None] = lambda _port: None


@dataclass(frozen=True)
class Observed:
    """A case as both sides saw it: the board's samples with the host's columns, and facts for the record.

    ``trace`` is what the board sent of its scheduler afterwards (`run trace`), where it kept a trace;
    ``trace_error`` says why that could not be had. ``current`` is what a meter saw.
    """

    series: Series
    environment: Mapping[str, Scalar]
    trace: Series | None = None
    trace_error: str = ""
    current: Mapping[str, Scalar] = field(default_factory=dict)


class Companion:
    """The host's side of one case. This base class serves a bench without a peer: it does nothing.

    Order of calls: ``start``; ``note`` and ``check`` any number of times; ``finish``, or once more
    ``check`` where the case failed; always ``stop``, also where ``start`` raised. All in one thread, the
    board's; but a run that is interrupted calls ``stop`` from another one while ``start`` or ``finish``
    waits, and then it comes twice.
    """

    def start(self) -> Mapping[str, str | int]:
        """Start what the case needs; returns what the board is to be told before (fields of ``provision``).

        Raises RigError: a program is missing, a port is taken. ConfigError: the case contradicts the rack.
        """
        return {}

    def note(self, note: Note) -> None:
        """Act on what the board says while it measures. Must not wait: the console is read by this thread."""

    def check(self) -> None:
        """Raise RigError or FirmwareError where this side knows why the case failed, or cannot go well any
        more. Asked every few seconds while the board measures, so it must be quick."""

    def finish(self, series: Series) -> Observed:
        """Wait for this side to end (with a deadline) and add what it saw.

        Raises RigError where this side failed, FirmwareError where the board's side contradicts it.
        """
        return Observed(series, {})

    def stop(self) -> None:
        """End everything, whatever happened before. Never raises."""


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
