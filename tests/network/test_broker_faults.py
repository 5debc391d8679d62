# SPDX-License-Identifier: Apache-2.0
"""A broker that is stalled, killed, cut off or flooded on purpose: what clients meet, and what is lost."""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from hil.base.errors import RigError
from hil.network import mqtt_packets as mqtt
from hil.network.broker import Broker, BrokerOptions
from hil.network.broker_client import Client as Connected
from hil.network.broker_client import find_client
from hil.network.broker_watch import BrokerWatch
from hil.network.certificates import Certificates
from hil.network.flood import TOPIC as FLOOD_TOPIC
from hil.network.flood import Flood
from hil.network.process import LocalProcess, LocalSpawner
from tests.boards.rack_tools import running_rack, wait_until
from tests.network.broker_rig import LOOPBACK, TIMEOUT_S, Client, running_broker

TOPIC = "test/topic"


@pytest.mark.slow
def test_a_stalled_broker_delays_and_loses_nothing(tmp_path: Path, certificates: Certificates) -> None:
    """Nothing comes out while it is stalled, and it is not called dead; afterwards all comes, in order."""
    with (
        running_broker(tmp_path, certificates) as broker,
        Client(broker) as subscriber,
        Client(broker) as publisher,
    ):
        subscriber.subscribe(TOPIC)
        broker.stall()
        for number in range(50):
            publisher.send(TOPIC, b"%d" % number)
        broker.check()
        assert broker.alive()
        assert not select.select([subscriber.socket, publisher.socket], [], [], 0.05)[0]
        broker.go_on()
        broker.go_on()
        publisher.received()
        assert subscriber.received() == [b"%d" % number for number in range(50)]


@pytest.mark.slow
def test_a_stalled_broker_can_be_ended_and_killed(tmp_path: Path, certificates: Certificates) -> None:
    """stop() of a stalled broker ends it in order; interrupt() kills it, and only resume() brings it back."""
    with running_broker(tmp_path, certificates) as broker:
        broker.stall()
        broker.interrupt()
        for act in (broker.stall, broker.go_on):
            with pytest.raises(RigError, match=r"SIG(STOP|CONT) to the MQTT broker .* interrupted"):
                act()
        broker.resume()
        with Client(broker) as client:
            client.publish(TOPIC, b"again")
        broker.stall()
    assert broker.log_path.read_text().count(" terminating") == 1


class WithoutRights(LocalSpawner):
    """Starts ss as nobody, who may not end another's connections."""

    def spawn(self, argv: Sequence[str], *, log_path: Path) -> LocalProcess:
        if argv[0].endswith("/ss") and os.geteuid() == 0:
            argv = ["setpriv", "--reuid", "65534", "--clear-groups", "--", *argv]
        return super().spawn(argv, log_path=log_path)


@pytest.mark.slow
def test_a_client_is_cut_off_without_rights_too(tmp_path: Path, certificates: Certificates) -> None:
    """Where ss -K is not permitted the broker ends this one client's connection; its session stays."""
    broker = Broker.start(WithoutRights(), LOOPBACK, tmp_path / "broker", certificates)
    try:
        with Client(broker, "victim", clean_session=False) as victim, Client(broker) as other:
            victim.subscribe(TOPIC)
            address, port = victim.socket.getsockname()
            assert broker.cut(f"{address}:{port}") == "closed"
            assert victim.socket.recv(1) == b""
            other.publish(TOPIC, b"meanwhile")
            with pytest.raises(RigError, match=rf"{address}:{port} .*not connected"):
                broker.cut(f"{address}:{port}")
        with Client(broker, "victim", clean_session=False) as victim:
            assert victim.received_all() == [b"meanwhile"]
    finally:
        broker.stop()


@pytest.mark.slow
def test_a_client_that_the_run_throws_out_is_no_second_hosts(
    tmp_path: Path, certificates: Certificates
) -> None:
    """What is done to a client by its own id is known to the watch; who has that id later is named."""
    folder, board = tmp_path / "broker", "127.0.0.2"
    broker = Broker.start(WithoutRights(), LOOPBACK, folder, certificates)
    watch = BrokerWatch.start(LocalSpawner(), LOOPBACK, broker.ports, folder, broker.absences)

    def connect(address: str) -> socket.socket:
        place = (LOOPBACK, broker.ports.tcp)
        client = socket.create_connection(place, source_address=(address, 0), timeout=10)
        client.sendall(mqtt.connect_packet("hil-board"))
        mqtt.read_packet(client)
        return client

    try:
        began_ns = time.monotonic_ns()
        with connect(board):
            assert broker.cut(board) == "closed"
        with connect(board):
            watch.check(began_ns)
        with connect(LOOPBACK), pytest.raises(RigError, match=r"Two hosts .* hil-board"):
            watch.check(began_ns)
    finally:
        watch.stop()
        broker.stop()


def test_the_log_says_who_is_connected() -> None:
    """A client is found by its address, with its port or without, until it goes or comes from elsewhere."""
    came = "1: New client connected from 10.0.0.2:400 as board (p2, c0, k120).\n"
    assert find_client(came, "10.0.0.2") == Connected("10.0.0.2", 400, "board", clean_session=False)
    assert find_client(came, "10.0.0.2:400") == find_client(came, "10.0.0.2")
    for gone in (
        "2: Client board disconnected.\n",
        "2: Client board closed its connection.\n",
        "2: Client board has exceeded timeout, disconnecting.\n",
        "2: New client connected from 10.0.0.3:400 as board (p2, c0, k120).\n",
    ):
        assert find_client(came + gone, "10.0.0.2") is None
        assert find_client(came + gone + came, "10.0.0.2") is not None
    assert find_client(came, "10.0.0.20") is None
    assert find_client(came, "10.0.0.2:4000") is None


WAITS_FOR_ITS_END = """
import sys
from hil.network import mqtt_packets as mqtt
connection = mqtt.connect("10.77.0.1", 1883, "board", 20.0)
print("connected", flush=True)
try:
    print("came", connection.recv(1))
except OSError as error:
    print(type(error).__name__)
"""


@pytest.mark.slow
def test_a_board_is_cut_off_stalled_and_flooded_in_a_rack(tmp_path: Path, certificates: Certificates) -> None:
    """In a rack's own network a cut board meets a RST; stalls, floods and the count of drops work there."""
    with running_rack(tmp_path / "rack") as rack:
        broker = Broker.start(
            rack, rack.host_address, tmp_path / "broker", certificates, BrokerOptions(statistics=True)
        )
        log = tmp_path / "board.log"
        board = rack.spawn([sys.executable, "-c", WAITS_FOR_ITS_END], netns="b1", log_path=log)
        wait_until(lambda: "connected" in log.read_text(), "the board is connected")
        assert broker.cut(rack.board_address("b1")) == "reset"
        assert board.wait(TIMEOUT_S) == 0
        assert log.read_text().split() == ["connected", "ConnectionResetError"]
        broker.stall()
        broker.check()
        broker.go_on()
        flood = Flood.start(
            rack, broker.address, broker.ports.tcp, seconds=60, messages=500, log_path=tmp_path / "flood.log"
        )
        counts = flood.stop_when_done()
        assert (counts.sent_count, counts.landed) == (500, True)
        assert broker.dropped_messages() == 0
        broker.stop()


@pytest.mark.slow
def test_a_flood_sends_what_it_says(tmp_path: Path, certificates: Certificates) -> None:
    """A flood of 3000 messages is 3000 messages at a subscriber, of the size asked for."""
    with running_broker(tmp_path, certificates) as broker, Client(broker) as subscriber:
        subscriber.subscribe(FLOOD_TOPIC, qos=0)
        size = {"messages": 3000, "payload_bytes": 10}
        place = (LocalSpawner(), LOOPBACK, broker.ports.tcp)
        flood = Flood.start(*place, seconds=60, **size, log_path=tmp_path / "flood.log")
        counts = flood.stop_when_done()
        assert (counts.sent_count, counts.payload_bytes, counts.landed) == (3000, 10, True)
        assert subscriber.received_all() == [bytes(10)] * 3000


@pytest.mark.slow
def test_a_flood_ends_when_told_and_when_its_time_is_up(tmp_path: Path, certificates: Certificates) -> None:
    """However it ends, it counts whole messages, as many as the broker's log has; one that finds nobody on
    the port fails with what came back."""
    with running_broker(tmp_path, certificates) as broker:
        sent = 0
        for seconds in (0.1, 60):
            log = tmp_path / "flood.log"
            flood = Flood.start(LocalSpawner(), LOOPBACK, broker.ports.tcp, seconds=seconds, log_path=log)
            counts = flood.stop_when_done() if seconds < 1 else flood.stop()
            assert counts.landed
            sent += counts.sent_count
        assert broker.log_path.read_text().count(f"'{FLOOD_TOPIC}'") == sent > 0
    with pytest.raises(RigError, match="ConnectionRefusedError"):
        Flood.start(LocalSpawner(), LOOPBACK, broker.ports.tcp, seconds=1, log_path=log)
