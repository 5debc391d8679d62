# SPDX-License-Identifier: Apache-2.0
"""Which fault a case means by its name, and what it takes to make and undo it.

The air that a case asks for on its board's link, and the run's put back afterwards.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass

from hil.base.errors import ConfigError, HilError, RigError
from hil.network.broker import Broker
from hil.network.flood import Flood
from hil.network.packet_filter import PacketFilter
from hil.network.peers.companion import Place
from hil.network.peers.mqtt.faults import Switch
from hil.network.peers.mqtt.peer_program import PeerProgram
from hil.network.peers.mqtt.settings import RACK_AIR, AirWish
from hil.virtual.air.control import AirControl, Number
from hil.virtual.air.profile import AirProfile, Gap, Impairment, load_profile

BURST_FRAMES = 5  # that a burst of losses is long on average
PPM = 1_000_000
WHERE = "at the virtual air: outside the device's host and the broker's"
_LINK_KEYS = frozenset(item.name for item in dataclasses.fields(Impairment))
_GAP_KEYS = frozenset(item.name for item in dataclasses.fields(Gap))
_GAP_PREFIX = "gap_"


class BoardAir:
    """The link of one board. Its random streams go on: which frames are lost is the run's seed's to say."""

    def __init__(self, place: Place, wish: AirWish) -> None:
        self._air = place.air
        self._board = place.board.id
        self._case_id = place.case.case_id
        self._wish = wish
        self._lock = threading.Lock()
        self._before: Mapping[str, Mapping[str, Number]] = {}
        self.impaired = "none beyond the rack's own air"

    def start(self) -> None:
        """Change the link as the case asks. Raises ConfigError as check() does."""
        if not self._wish.changes:
            return
        air = self._need_air()
        profile = None if self._wish.profile == RACK_AIR else load_profile(self._wish.profile)
        with self._lock:
            self._before = air.show(self._board)[self._board]
            if profile:
                air.profile(profile, self._board)
            for direction, changes in changes_of(self._wish).items():
                air.set(self._board, direction, **changes)
        self.impaired = description_of(self._wish, profile)

    def down(self) -> None:
        """Drop every frame of the board. Raises ConfigError as check() does."""
        self._need_air().down(self._board)

    def up(self) -> None:
        """Undo ``down``."""
        if self._air:
            self._air.up(self._board)

    def check(self, fault: str) -> None:
        """Raise ConfigError where the case, or its fault, needs an air that is not the rack's."""
        if fault == "blackout" or self._wish.changes:
            self._need_air()

    def put_back(self) -> None:
        """Give the link back as it was found; a second call does nothing. Never raises."""
        with self._lock:
            before, self._before = self._before, {}
            if self._air is None or not before:
                return
            for direction, facts in before.items():
                with suppress(HilError):
                    link = {key: value for key, value in facts.items() if key in _LINK_KEYS}
                    self._air.set(self._board, direction, **link)
            facts = next(iter(before.values()))
            gap = {key.removeprefix(_GAP_PREFIX): value for key, value in facts.items()}
            with suppress(HilError):
                self._air.gap(
                    self._board,
                    **{key: value for key, value in gap.items() if key in _GAP_KEYS},
                )

    def _need_air(self) -> AirControl:
        if self._air is None:
            raise ConfigError(
                f"{self._case_id} on board {self._board}: the access point is a real one, and its air is not "
                "the rack's to change.",
                next_step="measure the case on a virtual rack, or leave it out: --suite with air=rack, "
                "fault!=blackout, and for echo delay_us=-1 and no rates or losses.",
            )
        return self._air


def changes_of(wish: AirWish) -> Mapping[str, Mapping[str, Number]]:
    """Return what each direction's parameters become; a direction that nothing is asked of has none."""
    common: dict[str, Number] = {} if wish.delay_us is None else {"delay_us": wish.delay_us, "jitter_us": 0}
    found = {}
    for direction, rate_kbit, loss_ppm in (
        ("uplink", wish.rate_up_kbit, wish.loss_up_ppm),
        ("downlink", wish.rate_down_kbit, wish.loss_down_ppm),
    ):
        changes = dict(common)
        if rate_kbit is not None:
            changes["rate_kbit"] = rate_kbit
        if loss_ppm is not None:
            changes |= bursts_of(loss_ppm) if wish.bursts else {"loss_ppm": loss_ppm, "burst_start_ppm": 0}
        if changes:
            found[direction] = changes
    return found


def bursts_of(loss_ppm: int) -> dict[str, Number]:
    """Return Gilbert-Elliott's parameters for this mean loss in bursts of BURST_FRAMES frames on average.

    In the bad state everything is lost, in the good one nothing, so the mean is start / (start + end). More
    than 5 of 6 frames take longer bursts.
    """
    if loss_ppm >= PPM:
        return {"loss_ppm": PPM, "burst_start_ppm": 0}
    end_ppm = PPM // BURST_FRAMES
    start_ppm = round(end_ppm * loss_ppm / (PPM - loss_ppm))
    if start_ppm > PPM:
        start_ppm, end_ppm = PPM, max(1, round(PPM * (PPM - loss_ppm) / loss_ppm))
    return {
        "loss_ppm": 0,
        "burst_start_ppm": max(1, start_ppm),
        "burst_end_ppm": end_ppm,
        "burst_loss_ppm": PPM,
        "burst_good_loss_ppm": 0,
    }


def description_of(wish: AirWish, profile: AirProfile | None) -> str:
    """Say which hops are impaired and by what."""
    found = [f"both directions as the air {profile.name}"] if profile else []
    pattern = f"loss in bursts of {BURST_FRAMES} frames on average" if wish.bursts else "independent loss"
    if wish.delay_us is not None:
        found.append(f"both directions {wish.delay_us / 1000:g} ms delay without jitter")
    for direction, rate_kbit, loss_ppm in (
        ("uplink", wish.rate_up_kbit, wish.loss_up_ppm),
        ("downlink", wish.rate_down_kbit, wish.loss_down_ppm),
    ):
        words = [] if rate_kbit is None else [f"{rate_kbit} kbit/s"]
        words += [] if loss_ppm is None else [f"{loss_ppm / 10_000:g} % {pattern}"]
        if words:
            found.append(f"{direction} {' and '.join(words)}")
    return f"{', '.join(found)}, {WHERE}"


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
