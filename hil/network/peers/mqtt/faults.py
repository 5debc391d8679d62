# SPDX-License-Identifier: Apache-2.0
"""Make and undo each fault that a case can name."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from hil.base.errors import ConfigError, RigError
from hil.network.broker import Broker
from hil.network.flood import Flood
from hil.network.packet_filter import PacketFilter
from hil.network.peers.companion import Place
from hil.network.peers.mqtt.board_air import BoardAir
from hil.network.peers.mqtt.fault_schedule import Switch
from hil.network.peers.mqtt.peer_program import PeerProgram

CONNECTED_TIMEOUT_S = 10.0
AGAIN_S = 0.05
FLOOD_S_MAX = 60.0
FLOOD_MESSAGES_MAX = 200_000  # all are captured, and dissected


@dataclass(frozen=True)
class FaultTargets:
    """What faults are made of. ``port`` is the broker's that the board uses."""

    place: Place
    broker: Broker
    program: PeerProgram
    air: BoardAir
    port: int


def check_fault(place: Place, kind: str) -> None:
    """Raise ConfigError where the rack cannot make this fault."""
    if kind == "wire" and place.access_point_interface in ("", place.interface):
        raise ConfigError(
            f"{place.case.case_id} on board {place.board.id}: this host has no interface between "
            "the access point and the broker, so it cannot drop packets there.",
            next_step="name the access point's bridge port in the rack file (capture: {access_point: IFACE}) "
            "or leave the case out: --suite '… and fault!=wire'.",
        )


def switch_of(kind: str, targets: FaultTargets) -> Switch:
    """Return what makes and undoes a fault with a beginning and an end."""
    ways: dict[str, Callable[[FaultTargets, threading.Event], AbstractContextManager[bool]]] = {
        "cut": _cut,
        "blackout": _blackout,
        "wire": _wire,
        "stall": _stall,
        "kill": _kill,
        "flood": _flood,
        "subscriber_away": _subscriber_away,
    }
    way = ways[kind]
    return lambda stopping: way(targets, stopping)


@contextmanager
def _cut(targets: FaultTargets, stopping: threading.Event) -> Iterator[bool]:
    """Yield False where the case ended before the board, which may be coming back just now, was connected."""
    yield _cut_once_connected(targets, stopping)


def _cut_once_connected(targets: FaultTargets, stopping: threading.Event) -> bool:
    deadline = time.monotonic() + CONNECTED_TIMEOUT_S
    while True:
        try:
            targets.broker.cut(targets.place.board_address)
        except RigError:
            if stopping.wait(AGAIN_S):
                return False
            if time.monotonic() > deadline:
                raise
        else:
            return True


@contextmanager
def _blackout(targets: FaultTargets, stopping: threading.Event) -> Iterator[bool]:
    del stopping
    targets.air.down()
    try:
        yield True
    finally:
        targets.air.up()


@contextmanager
def _wire(targets: FaultTargets, stopping: threading.Event) -> Iterator[bool]:
    del stopping
    place = targets.place
    log = place.folder / "nft.txt"
    filtered = PacketFilter(
        place.spawner, place.access_point_interface, place.board_address, targets.port, log_path=log
    )
    with filtered.drop("all"):
        yield True


@contextmanager
def _stall(targets: FaultTargets, stopping: threading.Event) -> Iterator[bool]:
    del stopping
    targets.broker.stall()
    try:
        yield True
    finally:
        targets.broker.go_on()


@contextmanager
def _kill(targets: FaultTargets, stopping: threading.Event) -> Iterator[bool]:
    del stopping
    targets.broker.interrupt()
    try:
        yield True
    finally:
        targets.broker.resume()


@contextmanager
def _flood(targets: FaultTargets, stopping: threading.Event) -> Iterator[bool]:
    del stopping
    broker, place = targets.broker, targets.place
    flood = Flood.start(
        place.spawner,
        broker.address,
        broker.ports.tcp,
        seconds=FLOOD_S_MAX,
        messages=FLOOD_MESSAGES_MAX,
        log_path=place.folder / "flood.txt",
    )
    try:
        yield True
        flood.stop()
    finally:
        flood.kill()


@contextmanager
def _subscriber_away(targets: FaultTargets, stopping: threading.Event) -> Iterator[bool]:
    del stopping
    with targets.program.halted():
        yield True
