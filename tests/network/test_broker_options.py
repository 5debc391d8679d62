# SPDX-License-Identifier: Apache-2.0
"""What a case may set on its broker: each option shows in what clients meet."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hil.network import mqtt_packets as mqtt
from hil.network.broker_config import BrokerOptions
from hil.network.certificates import Certificates
from tests.network.broker_rig import Client, running_broker

pytestmark = pytest.mark.slow

TOPIC = "test/topic"
SENT = 20


def publish_numbers(client: Client, count: int = SENT) -> list[bytes]:
    payloads = [b"%d" % number for number in range(count)]
    for payload in payloads:
        client.publish(TOPIC, payload)
    return payloads


@pytest.mark.parametrize("connected", [True, False])
def test_a_full_queue_drops_exactly_what_it_has_no_place_for(
    connected: bool, tmp_path: Path, certificates: Certificates
) -> None:
    """mosquitto's count of dropped messages is what was sent less the places: in flight and queued.

    In newer ones, such as 2.0.21, the queue of a client that is there is longer by those in flight.
    """
    options = BrokerOptions(max_inflight_messages=3, max_queued_messages=5, statistics=True)
    with running_broker(tmp_path, certificates, options) as broker, Client(broker) as publisher:
        with Client(broker, "subscriber", clean_session=False) as subscriber:
            subscriber.subscribe(TOPIC)
            if not connected:
                subscriber.leave()
            payloads = publish_numbers(publisher)
            dropped = broker.dropped_messages() or 0
            assert dropped in ((SENT - 3 - 5, SENT - 3 - 3 - 5) if connected else (SENT - 5,))
            if connected:
                assert subscriber.received_all() == payloads[:-dropped]
        if not connected:
            with Client(broker, "subscriber", clean_session=False) as again:
                assert again.received_all() == payloads[:-dropped]


def test_a_broker_that_was_not_told_to_count_says_nothing(tmp_path: Path, certificates: Certificates) -> None:
    """Without statistics, and while the broker is interrupted, the number of drops is unknown, not zero."""
    with running_broker(tmp_path / "silent", certificates) as broker:
        assert broker.dropped_messages() is None
    with running_broker(tmp_path / "counting", certificates, BrokerOptions(statistics=True)) as broker:
        broker.interrupt()
        assert broker.dropped_messages() is None


@pytest.mark.parametrize("inflight", [0, 1, 4])
def test_no_more_are_in_flight_than_allowed(
    inflight: int, tmp_path: Path, certificates: Certificates
) -> None:
    """A subscriber that acknowledges nothing gets max_inflight_messages, all where it is 0; then the rest."""
    options = BrokerOptions(max_inflight_messages=inflight)
    with (
        running_broker(tmp_path, certificates, options) as broker,
        Client(broker) as subscriber,
        Client(broker) as publisher,
    ):
        subscriber.subscribe(TOPIC)
        payloads = publish_numbers(publisher)
        assert subscriber.received() == payloads[: inflight or SENT]


def segments_of_a_burst(folder: Path, certificates: Certificates, *, nodelay: bool) -> int:
    with (
        running_broker(folder, certificates, BrokerOptions(tcp_nodelay=nodelay)) as broker,
        Client(broker) as subscriber,
        Client(broker) as publisher,
    ):
        subscriber.subscribe(TOPIC, qos=0)
        subscriber.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)  # ACKs come late
        before = subscriber.segments_in()
        publisher.socket.sendall(mqtt.publish_packet(TOPIC, b"small") * SENT)
        publisher.received()
        assert len(subscriber.received()) == SENT
        return subscriber.segments_in() - before


def test_nagle_joins_messages_and_nodelay_does_not(tmp_path: Path, certificates: Certificates) -> None:
    """Without tcp_nodelay all that comes before the first message's ACK goes out in one segment after it."""
    nagle = segments_of_a_burst(tmp_path / "nagle", certificates, nodelay=False)
    assert nagle <= 3  # the first, the others, the answer to a ping
    assert segments_of_a_burst(tmp_path / "nodelay", certificates, nodelay=True) > nagle


@pytest.mark.parametrize(("persistence", "survives"), [("off", False), ("on", False), ("each", True)])
def test_what_is_saved_survives_a_kill(
    persistence: str, survives: bool, tmp_path: Path, certificates: Certificates
) -> None:
    """After kill -9 a broker that saves each change has queue and retained message; others do not."""
    options = BrokerOptions(persistence=persistence)  # type: ignore[arg-type]
    with running_broker(tmp_path, certificates, options) as broker:
        subscriber = Client(broker, "subscriber", clean_session=False)
        subscriber.subscribe(TOPIC)
        subscriber.leave()
        with Client(broker) as publisher:
            publisher.publish(TOPIC, b"waiting")
            publisher.publish("retained", b"kept", retain=True)
            publisher.received()  # the turn of the broker's loop that acknowledged has ended, and saved
            broker.interrupt()
            broker.resume()
        with Client(broker, "subscriber", clean_session=False) as again:
            again.subscribe("retained")
            assert again.received_all() == ([b"waiting", b"kept"] if survives else [])
    assert not (tmp_path / "broker" / "persistence").exists()
