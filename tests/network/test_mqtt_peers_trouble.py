# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on the host's side of `delivery` and `echo` names itself, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError, HilError, RigError
from hil.model import Series
from hil.network.broker import Broker
from hil.network.peers.companion import Place
from hil.network.peers.mqtt import peer as peer_module
from hil.network.peers.mqtt.board_air import BoardAir
from hil.network.peers.mqtt.delivery import DeliveryCompanion
from hil.network.peers.mqtt.dissecting import Captures
from hil.network.peers.mqtt.peer_program import PeerProgram
from hil.virtual.air.profile import load_profile
from hil.virtual.virtual_rack import profile_in_force
from tests.lab import Process, all_processes, wait_for
from tests.network.mqtt_peers_rig import COMPANIONS, PeersLab, await_end, peers_lab, series_of

MAKE_LAB = peers_lab
pytestmark = pytest.mark.slow

PERFECT = load_profile("perfect")
AIR = {"air": "crowded"}


def processes_of(place: Place) -> list[Process]:
    return [process for process in all_processes() if str(place.folder) in process.name]


def check_nothing_is_left(lab: PeersLab, place: Place) -> None:
    """No program of the case, no key of its broker, and the air as it was."""
    wait_for(lambda: not processes_of(place), lambda: f"left: {processes_of(place)}", 10)
    assert not list(place.secrets_dir.iterdir())
    assert profile_in_force(lab.rack, PERFECT)


def check_refused(lab: PeersLab, place: Place, error: type[HilError], said: str) -> None:
    """start() raises; stop() is harmless, before as after, and nothing is left."""
    COMPANIONS[place.case.bench](place).stop()
    companion = COMPANIONS[place.case.bench](place)
    with pytest.raises(error, match=said):
        companion.start()
    companion.stop()
    companion.stop()
    check_nothing_is_left(lab, place)


# ---- a part dies ----


@pytest.mark.parametrize(
    ("word", "number", "said"),
    [
        ("mqtt.subscriber", signal.SIGKILL, r"subscriber \(pid \d+\) was killed by signal 9"),
        (
            "mosquitto.conf",
            signal.SIGKILL,
            r"broker \(mosquitto, pid \d+, 10\.77\.0\.1\) was killed by signal 9",
        ),
        ("access-point.pcapng", signal.SIGKILL, r"capture \(dumpcap, pid \d+\) was killed by signal 9"),
        ("mqtt.subscriber", signal.SIGSTOP, r"subscriber stood still for 1\.\d s"),
        ("mosquitto.conf", signal.SIGSTOP, r"broker stood still for 1\.\d s"),
    ],
)
def test_a_part_that_dies_or_stands_still_is_named(
    lab: PeersLab, word: str, number: signal.Signals, said: str
) -> None:
    """check() names what died, so the case need not wait for its deadline, or made every message late, which
    looks as if the firmware did; finish() does not pass it over."""
    place = lab.place("delivery", **AIR)
    with lab.attended(place) as (companion, _):
        companion.check()
        (found,) = [process for process in processes_of(place) if word in process.name]
        os.kill(found.pid, number)
        if number == signal.SIGKILL:
            wait_for(lambda: not found.alive(), lambda: f"{found} lives", 10)
        else:
            time.sleep(1.3)
            os.kill(found.pid, signal.SIGCONT)
        columns = dict.fromkeys(("planned_us", "sent_us", "done_us", "connection", "tcp"), (1,))
        rows = Series(place.case, {**columns, "outcome": (0,)}, 0, "c", "f", "r", 1, {"message_run": 1})
        for look in (companion.check, lambda: companion.finish(rows)):
            with pytest.raises(RigError, match=said):
                look()
    check_nothing_is_left(lab, place)


def test_a_missing_tshark_is_found_before_the_measurement(
    lab: PeersLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is needed at the end is asked for at the beginning, and the sentence says how to get it."""
    which = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda name, **more: None if name == "tshark" else which(name, **more)
    )
    check_refused(lab, lab.place("echo"), RigError, "apt-get install tshark")


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
    check_refused(lab, place, RigError, f"{method} failed")


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
    with lab.attended(place):
        pass
    kept = {path.name for path in place.folder.iterdir()}
    assert {"access-point.pcapng", "broker.pcapng", "mosquitto.log"} <= kept


# ---- what a rack cannot do ----


REAL: dict[str, Any] = {"air": None}
NO_INTERFACE = {"access_point_interface": ""}
IS_REAL = r"/.*board b1: .*real.*virtual rack"


@pytest.mark.parametrize(
    ("bench", "changes", "rack", "said"),
    [
        ("delivery", {"fault": "blackout"}, REAL, IS_REAL),
        ("delivery", {"air": "crowded"}, REAL, IS_REAL),
        ("echo", {"loss_down_ppm": 1000}, REAL, IS_REAL),
        ("echo", {"delay_us": 0}, REAL, IS_REAL),
        ("delivery", {"fault": "wire"}, NO_INTERFACE, r".*capture: \{access_point: IFACE\}.*fault!=wire"),
    ],
)
def test_what_a_rack_cannot_do_is_an_error_in_the_selection(
    lab: PeersLab, bench: str, changes: dict[str, str | int], rack: dict[str, Any], said: str
) -> None:
    """A real access point is not the rack's to change, and without an interface between access point and
    broker no packet can be dropped there: the sentence has a way out."""
    check_refused(lab, replace(lab.place(bench, **changes), **rack), ConfigError, bench + said)
