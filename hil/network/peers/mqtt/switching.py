"""Which fault a case means by its name, and what it takes to make and undo it."""

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
from hil.network.peers.mqtt.air import BoardAir
from hil.network.peers.mqtt.faults import Switch
from hil.network.peers.mqtt.peer_program import PeerProgram

CONNECTED_TIMEOUT_S = 10.0
AGAIN_S = 0.05
FLOOD_S_MAX = 60.0
FLOOD_MESSAGES_MAX = 200_000  # all are captured, and dissected


@dataclass(frozen=True)
class Parts:
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
            f"{place.case.case_id} on board {place.board.id}: nothing on this host stands between the access "
            "point and the broker, so no packet can be dropped there.",
            next_step="name the access point's bridge port in the rack file (capture: {access_point: IFACE}) "
            "or leave the case out: --suite '… and fault!=wire'.",
        )


def switch_of(kind: str, parts: Parts) -> Switch:
    """Return what makes and undoes a fault with a beginning and an end."""
    ways: dict[str, Callable[[Parts, threading.Event], AbstractContextManager[bool]]] = {
        "cut": _cut,
        "blackout": _blackout,
        "wire": _wire,
        "stall": _stall,
        "kill": _kill,
        "flood": _flood,
        "subscriber_away": _subscriber_away,
    }
    way = ways[kind]
    return lambda stopping: way(parts, stopping)


@contextmanager
def _cut(parts: Parts, stopping: threading.Event) -> Iterator[bool]:
    """Yield False where the case ended before the board, which may be coming back just now, was connected."""
    yield _cut_once_connected(parts, stopping)


def _cut_once_connected(parts: Parts, stopping: threading.Event) -> bool:
    deadline = time.monotonic() + CONNECTED_TIMEOUT_S
    while True:
        try:
            parts.broker.cut(parts.place.board_address)
        except RigError:
            if stopping.wait(AGAIN_S):
                return False
            if time.monotonic() > deadline:
                raise
        else:
            return True


@contextmanager
def _blackout(parts: Parts, stopping: threading.Event) -> Iterator[bool]:
    del stopping
    parts.air.down()
    try:
        yield True
    finally:
        parts.air.up()


@contextmanager
def _wire(parts: Parts, stopping: threading.Event) -> Iterator[bool]:
    del stopping
    place = parts.place
    log = place.folder / "nft.txt"
    filtered = PacketFilter(
        place.spawner, place.access_point_interface, place.board_address, parts.port, log_path=log
    )
    with filtered.drop("all"):
        yield True


@contextmanager
def _stall(parts: Parts, stopping: threading.Event) -> Iterator[bool]:
    del stopping
    parts.broker.stall()
    try:
        yield True
    finally:
        parts.broker.go_on()


@contextmanager
def _kill(parts: Parts, stopping: threading.Event) -> Iterator[bool]:
    del stopping
    parts.broker.interrupt()
    try:
        yield True
    finally:
        parts.broker.resume()


@contextmanager
def _flood(parts: Parts, stopping: threading.Event) -> Iterator[bool]:
    del stopping
    broker, place = parts.broker, parts.place
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
def _subscriber_away(parts: Parts, stopping: threading.Event) -> Iterator[bool]:
    del stopping
    with parts.program.halted():
        yield True
