# SPDX-License-Identifier: Apache-2.0
"""The peers of `delivery` and `echo` over a real broker, real captures and the virtual air."""

from __future__ import annotations

import csv
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hil.boards.rack.noise import NoiseSettings
from hil.network.ledger.points import Owner
from hil.network.peers.companion import Observed, Place
from hil.network.peers.mqtt.delivery import DeliveryCompanion
from hil.network.peers.mqtt.faults import FaultTargets, switch_of
from hil.network.process import Process
from hil.run.run_air import RunAir
from hil.virtual.air.profile import load_profile
from hil.virtual.noise import Noise, load_noise_profile
from hil.virtual.virtual_rack import profile_in_force
from tests.lab import wait_for
from tests.network.mqtt_board import OK
from tests.network.mqtt_peers_rig import PeersLab, await_end, peers_lab, series_of
from tests.network.places import BOARD

MAKE_LAB = peers_lab
pytestmark = pytest.mark.slow

LAB = load_profile("lab")
SILENT = ("blackout", "wire", "stall", "kill", "subscriber_away")
SOON_S = 15.0


def ledger_of(place: Place) -> list[dict[str, str]]:
    return list(csv.DictReader((place.folder / "ledger.csv").read_text().splitlines()))


def check_sums(outcome: Observed) -> None:
    """Owners and arrivals are the number sent, in the columns and in the facts."""
    facts, owners = outcome.environment, outcome.series.columns["owner"]
    lost = {name: count for name, count in facts.items() if name.startswith("lost_") and name != "lost_count"}
    assert sum(int(count or 0) for count in lost.values()) == facts["lost_count"]
    assert (
        facts["sent_count"] == len(owners) == int(facts["arrived_count"] or 0) + int(facts["lost_count"] or 0)
    )
    assert owners.count(Owner.ARRIVED) == facts["arrived_count"]


# ---- whole cases ----


def test_every_message_is_seen_at_every_point(lab: PeersLab) -> None:
    """Where nothing is lost all points saw all messages; captures go, the other raw material stays."""
    outcome, place = lab.measure("delivery", count=30, qos=2)
    facts, columns = outcome.environment, outcome.series.columns
    check_sums(outcome)
    assert facts["arrived_count"] == 30
    points = ("device_call", "access_point", "broker_in", "broker_out")
    assert {facts[f"seen_{point}_count"] for point in points} == {30}
    assert set(columns["arrivals"]) == {1}
    assert list(columns["arrived_us"]) == sorted(columns["arrived_us"])
    assert min(columns["arrived_us"]) > 0
    none = ("ap_dropped_count", "broker_dropped_count", "broker_dropped_messages", "ap_retransmission_count")
    assert [facts[name] for name in none] == [0] * 4
    assert facts["subscriber"] == "host: paho-mqtt 2.2.0, TCP_NODELAY"
    assert str(facts["impaired"]).startswith("none ")
    assert facts["broker_out_publishes_count"] == 30
    assert len(ledger_of(place)) == 30
    kept = {path.name for path in place.folder.iterdir()}
    assert kept == {"arrivals.csv", "ledger.csv", "mosquitto.conf", "mosquitto.log", "subscriber.jsonl"}


def test_messages_inside_tls_are_followed(lab: PeersLab) -> None:
    """The broker's keys open both captures; they are among the run's secrets, and gone after the case."""
    outcome, place = lab.measure("delivery", count=20, transport="tls", keep_captures=True)
    assert outcome.environment["tls_followed"] is True
    assert outcome.environment["seen_access_point_count"] == outcome.environment["seen_broker_in_count"] == 20
    assert {"access-point.pcapng", "broker.pcapng"} <= {path.name for path in place.folder.iterdir()}
    assert not list(place.secrets_dir.iterdir())


def test_a_careless_subscriber_owns_what_it_threw_away(lab: PeersLab) -> None:
    """Each tenth message reaches the application and is lost there: the ledger names these and no other."""
    outcome, place = lab.measure("delivery", count=45, fault="subscriber_drop")
    check_sums(outcome)
    truth = [int(line) for line in (place.folder / "dropped.csv").read_text().split()[1:]]
    owners = outcome.series.columns["owner"]
    assert [row for row, owner in enumerate(owners) if owner == Owner.SUBSCRIBER] == truth
    assert len(truth) == outcome.environment["lost_count"] == 4


def test_what_is_lost_between_access_point_and_broker_is_theirs(lab: PeersLab) -> None:
    """Frames are dropped behind the access point while the board's connection dies: what was captured there
    and nowhere else is lost to broker_in, and nothing of it is anybody else's."""
    place = lab.place(
        "delivery", qos=0, count=220, interval_us=10_000, fault="wire", fault_after_ms=200, fault_ms=3000
    )
    with lab.attended(place) as (companion, orders):
        board = lab.start_board(orders)
        arrivals = place.folder / "arrivals.csv"
        await_more(arrivals)
        await_silence(arrivals)
        reset = ["ss", "-K", "-t", "-n", "state", "established", "dst", lab.rack.host_address]
        assert lab.rack.spawn(reset, netns="b1", log_path=lab.folder / "reset.txt").wait(10) == 0
        await_end(board, companion, Path(orders.out).with_name("board.log"))
        outcome = companion.finish(series_of(place, orders))
    check_sums(outcome)
    lines = ledger_of(place)
    only_there = [line["number"] for line in lines if line["access_point_us"] and not line["broker_in_us"]]
    assert only_there
    assert only_there == [line["number"] for line in lines if line["owner"] == "broker_in"]
    refused = [line["owner"] for line in lines if line["outcome"] == "refused"]
    assert set(refused) == {"device_call"}
    assert outcome.environment["faults_count"] == 1
    assert 3_000_000 <= int(outcome.environment["fault_us"] or 0) < 6_000_000


def test_a_rack_without_an_access_point_interface_says_unknown(lab: PeersLab) -> None:
    """Nobody looked at the access point: its facts are unknown, not nought, and the rest is as ever."""
    outcome = lab.measure_in(replace(lab.place("delivery", count=20), access_point_interface=""))
    facts = outcome.environment
    assert facts["arrived_count"] == facts["seen_broker_in_count"] == 20
    unknown = [
        name for name in facts if name.startswith(("ap_", "overhead_")) or name == "seen_access_point_count"
    ]
    assert len(unknown) > 10
    assert {facts[name] for name in unknown} == {None}


def test_an_echo_is_counted_and_its_connection_cut(lab: PeersLab) -> None:
    """The peer sends everything back; the board's connection is cut so often, and it comes back."""
    case = {"count": 300, "interval_us": 10_000, "cut_every_ms": 1_000, "clean_session": 0}
    outcome, place = lab.measure("echo", air="lab", loss_up_ppm=10_000, **case)
    facts = outcome.environment
    assert int(facts["cuts_count"] or 0) >= 1
    log = (place.folder / "mosquitto.log").read_text()
    assert log.count(" as board (") >= 2  # not by the rows: all may have been planned before it is back
    assert set(outcome.series.columns["outcome"]) == {OK}
    assert int(facts["echoed_count"] or 0) >= 300
    assert "air lab, uplink 1 %" in str(facts["impaired"])
    assert facts["air_profile"] == "lab"
    assert "owner" not in outcome.series.columns
    assert "echo.jsonl" in {path.name for path in place.folder.iterdir()}


# ---- each fault ----


def await_silence(arrivals: Path) -> None:
    """Wait until none comes any more."""
    sizes = [0] * 12

    def silent() -> bool:
        sizes.append(arrivals.stat().st_size)
        return sizes[-12] == sizes[-1]

    wait_for(silent, lambda: "messages go on coming", SOON_S)


def await_more(arrivals: Path) -> None:
    size = arrivals.stat().st_size
    wait_for(lambda: arrivals.stat().st_size > size, lambda: "nothing comes any more", SOON_S)


@pytest.fixture(scope="module")
def going(lab: PeersLab) -> Iterator[tuple[FaultTargets, Path]]:
    """A case that goes on for as long as the tests of single faults last."""
    place = lab.place("delivery", count=20_000, interval_us=5_000)
    parts = DeliveryCompanion(place)
    arrivals = place.folder / "arrivals.csv"
    board: Process | None = None
    try:
        orders = lab.orders(place, parts.start())
        board = lab.start_board(orders)
        assert parts.broker
        assert parts.program
        yield FaultTargets(place, parts.broker.broker, parts.program, parts.air, parts.broker.port), arrivals
    finally:
        if board:
            board.kill()
        parts.stop()


@pytest.mark.parametrize("kind", SILENT)
def test_a_fault_silences_and_is_undone(going: tuple[FaultTargets, Path], kind: str) -> None:
    """While it is in force nothing reaches the subscriber's application; afterwards messages come again."""
    parts, arrivals = going
    await_more(arrivals)
    with switch_of(kind, parts)(threading.Event()) as made:
        assert made
        await_silence(arrivals)
    await_more(arrivals)


@pytest.mark.parametrize(("kind", "logged"), [("cut", " as board "), ("flood", "'hil/flood'")])
def test_a_fault_that_silences_nobody_is_in_the_brokers_log(
    going: tuple[FaultTargets, Path], kind: str, logged: str
) -> None:
    """The board's connection breaks, the subscriber's does not, and it comes back; a flood is of a client of
    its own. Messages go on."""
    parts, arrivals = going
    log = parts.broker.log_path
    await_more(arrivals)
    before = log.read_text().count(logged)
    with switch_of(kind, parts)(threading.Event()) as made:
        assert made
        wait_for(lambda: log.read_text().count(logged) > before, lambda: f"no{logged}", SOON_S)
    await_more(arrivals)


def test_a_slow_disk_is_told_to_the_record(lab: PeersLab) -> None:
    """The broker saves every change, through a simulated disk; its configuration, and the digest, say so."""
    slow, place = lab.measure("delivery", count=20, fault="slow_disk")
    config = (place.folder / "mosquitto.conf").read_text()
    assert "autosave_on_changes true" in config
    assert "# simulated: SlowDisk" in config
    assert slow.environment["faults_count"] == 0


# ---- the air ----


def test_a_case_leaves_the_air_as_it_was(lab: PeersLab) -> None:
    """A case may have its own air, on a link with noise: that is no change by others, and is taken back."""
    noise = Noise(NoiseSettings(profile="typical", seed=1, session="x"), load_noise_profile("typical"), "run")
    air = RunAir(lab.rack, [BOARD.id], LAB, noise)
    air.begin_boot(BOARD)
    air.apply()
    air.begin_case(BOARD)
    place = lab.place("echo", air="crowded", delay_us=7000, loss_down_ppm=5000, loss_pattern="bursts")
    with lab.attended(place):
        downlink = lab.rack.air.show("b1")["b1"]["downlink"]
        assert (downlink["delay_us"], downlink["burst_end_ppm"]) == (7000, 200_000)
    air.check_case(BOARD)
    assert not profile_in_force(lab.rack, LAB)  # the noise is still there
    lab.rack.air.profile(load_profile("perfect"))


def test_a_blackout_that_lasts_ends_with_the_case(lab: PeersLab) -> None:
    """stop() in the middle of a blackout raises the link again."""
    place = lab.place("delivery", count=500, fault="blackout", fault_after_ms=0, fault_ms=60_000)
    with lab.attended(place) as (_, orders):
        board = lab.start_board(orders)
        wait_for(lambda: not is_up(lab), lambda: "no blackout", SOON_S)
        board.kill()
    assert is_up(lab)


def is_up(lab: PeersLab) -> bool:
    return lab.rack.air.show("b1")["b1"]["uplink"]["up"] == 1
