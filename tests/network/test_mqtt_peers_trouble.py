# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on the host's side of `delivery` and `echo` names itself, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, HilError, RigError
from hil.model import Series
from hil.network.broker import Broker
from hil.network.peers.companion import Place
from hil.network.peers.mqtt import peer as peer_module
from hil.network.peers.mqtt.board_air import BoardAir
from hil.network.peers.mqtt.delivery import DeliveryCompanion
from hil.network.peers.mqtt.dissecting import Captures
from hil.network.peers.mqtt.echoing import EchoCompanion
from hil.network.peers.mqtt.peer_program import PeerProgram
from hil.virtual.air.profile import load_profile
from hil.virtual.virtual_rack import profile_in_force
from tests.lab import Process, all_processes, wait_for
from tests.network.mqtt_peers_rig import PeersLab, await_end, peers_lab, series_of

pytestmark = pytest.mark.slow

PERFECT = load_profile("perfect")
AIR = {"air": "crowded"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PeersLab]:
    with peers_lab(tmp_path_factory.mktemp("mqtt-trouble")) as started:
        yield started


def processes_of(place: Place) -> list[Process]:
    return [process for process in all_processes() if str(place.folder) in process.name]


def check_nothing_is_left(lab: PeersLab, place: Place) -> None:
    """No program of the case, no key of its broker, and the air as it was."""
    wait_for(lambda: not processes_of(place), lambda: f"left: {processes_of(place)}", 10)
    assert not list(place.secrets_dir.iterdir())
    assert profile_in_force(lab.rack, PERFECT)


def kill(place: Place, word: str) -> None:
    """Kill the program of a case whose command line holds a word."""
    (found,) = [process for process in processes_of(place) if word in process.name]
    os.kill(found.pid, signal.SIGKILL)
    wait_for(lambda: not found.alive(), lambda: f"{found} lives", 10)


# ---- a part dies ----


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("hil.network.peers.mqtt.subscriber", r"The host's subscriber \(pid \d+\) was killed by signal 9"),
        ("mosquitto.conf", r"The MQTT broker \(mosquitto, pid \d+, 10\.77\.0\.1\) was killed by signal 9"),
        ("access-point.pcapng", r"The capture \(dumpcap, pid \d+\) was killed by signal 9 too early"),
    ],
)
def test_a_part_that_dies_is_named(lab: PeersLab, word: str, sentence: str) -> None:
    """check() names what died, so the case need not wait for its deadline; finish() does not pass it over."""
    place = lab.place("delivery", **AIR)
    companion = DeliveryCompanion(place)
    try:
        companion.start()
        companion.check()
        kill(place, word)
        with pytest.raises(RigError, match=sentence):
            companion.check()
        columns = dict.fromkeys(("planned_us", "sent_us", "done_us", "connection", "tcp"), (1,))
        rows = Series(place.case, {**columns, "outcome": (0,)}, 0, "c", "f", "r", 1, {"message_run": 1})
        with pytest.raises(RigError, match=sentence):
            companion.finish(rows)
    finally:
        companion.stop()
    check_nothing_is_left(lab, place)


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("hil.network.peers.mqtt.subscriber", r"The host's subscriber stood still for 1\.\d s meanwhile"),
        ("mosquitto.conf", r"The case's MQTT broker stood still for 1\.\d s meanwhile"),
    ],
)
def test_a_part_that_stands_still_is_named(lab: PeersLab, word: str, sentence: str) -> None:
    """It makes every message late, and looks as if the firmware did."""
    place = lab.place("delivery", **AIR)
    companion = DeliveryCompanion(place)
    try:
        companion.start()
        (found,) = [process for process in processes_of(place) if word in process.name]
        os.kill(found.pid, signal.SIGSTOP)
        time.sleep(1.3)
        os.kill(found.pid, signal.SIGCONT)
        with pytest.raises(RigError, match=sentence):
            companion.check()
    finally:
        companion.stop()
    check_nothing_is_left(lab, place)


def test_a_missing_tshark_is_found_before_the_measurement(
    lab: PeersLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is needed at the end is asked for at the beginning, and the sentence says how to get it."""
    which = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda name, **more: None if name == "tshark" else which(name, **more)
    )
    place = lab.place("echo")
    companion = EchoCompanion(place)
    with pytest.raises(RigError, match=r"tshark is not installed\..*apt-get install tshark"):
        companion.start()
    companion.stop()
    check_nothing_is_left(lab, place)


# ---- stop() at any point ----


@pytest.mark.parametrize(
    ("owner", "method"),
    [
        (Broker, "start"),
        (Captures, "start"),
        (PeerProgram, "await_subscribed"),
        (BoardAir, "start"),
        (peer_module.MqttPeer, "_start_faults"),
    ],
)
def test_a_start_that_fails_anywhere_leaves_nothing(
    lab: PeersLab, monkeypatch: pytest.MonkeyPatch, owner: type, method: str
) -> None:
    """Whatever part does not come up, stop() ends those before it; a second stop does nothing."""

    def fails(*_: object, **__: object) -> None:
        raise RigError(f"{method} failed")

    monkeypatch.setattr(owner, method, fails)
    place = lab.place("delivery", transport="tls", fault="blackout", **AIR)
    companion = DeliveryCompanion(place)
    with pytest.raises(RigError, match=f"{method} failed"):
        companion.start()
    companion.stop()
    companion.stop()
    check_nothing_is_left(lab, place)


def test_a_companion_that_was_never_started_can_be_stopped(lab: PeersLab) -> None:
    """stop() comes also where start() raised at once."""
    place = lab.place("echo")
    EchoCompanion(place).stop()
    check_nothing_is_left(lab, place)


def test_an_interrupted_run_stops_from_another_thread(lab: PeersLab) -> None:
    """stop() while finish() waits for messages that do not come: it ends soon, and nothing is left."""
    place = lab.place("delivery", count=20, fault="subscriber_drop", **AIR)
    companion = DeliveryCompanion(place)
    ended = threading.Event()
    try:
        orders = lab.orders(place, companion.start())
        await_end(lab.start_board(orders), companion, Path(orders.out).with_name("board.log"))
        rows = series_of(place, orders)

        def finish() -> None:
            with pytest.raises(HilError):
                companion.finish(rows)
            ended.set()

        thread = threading.Thread(target=finish)
        thread.start()
        companion.stop()
        assert ended.wait(20)
        thread.join()
    finally:
        companion.stop()
    check_nothing_is_left(lab, place)


def test_a_failed_case_keeps_its_captures(lab: PeersLab) -> None:
    """What a person wants to look at stays where the case failed, also where nobody asked for captures."""
    place = lab.place("delivery")
    companion = DeliveryCompanion(place)
    try:
        companion.start()
    finally:
        companion.stop()
    assert {"access-point.pcapng", "broker.pcapng", "mosquitto.log"} <= {
        p.name for p in place.folder.iterdir()
    }


# ---- what a rack cannot do ----


@pytest.mark.parametrize(
    ("bench", "changes"),
    [
        ("delivery", {"fault": "blackout"}),
        ("delivery", {"air": "crowded"}),
        ("echo", {"loss_down_ppm": 1000}),
        ("echo", {"delay_us": 0}),
    ],
)
def test_a_real_access_point_is_not_the_racks_to_change(
    lab: PeersLab, bench: str, changes: dict[str, str | int]
) -> None:
    """A case that needs another air than a real one is an error in the selection, with a way out."""
    place = replace(lab.place(bench, **changes), air=None)
    companion = (DeliveryCompanion if bench == "delivery" else EchoCompanion)(place)
    with pytest.raises(ConfigError, match=f"{bench}/.*board b1: the access point is real.*virtual rack"):
        companion.start()
    companion.stop()
    check_nothing_is_left(lab, place)


def test_a_wire_needs_an_interface_to_cut(lab: PeersLab) -> None:
    """Without an interface between access point and broker no packet can be dropped there."""
    place = replace(lab.place("delivery", fault="wire"), access_point_interface="")
    companion = DeliveryCompanion(place)
    with pytest.raises(ConfigError, match=r"capture: \{access_point: IFACE\}.*fault!=wire"):
        companion.start()
    companion.stop()
    check_nothing_is_left(lab, place)
