# SPDX-License-Identifier: Apache-2.0
"""The echo bench as the host sees it: the real firmware, its echoes from a real broker or a script."""

from __future__ import annotations

from collections.abc import Iterator

import paho.mqtt.client as paho
import pytest

from hil.base.errors import ConfigError
from hil.model import Series
from hil.session import AgentSession
from tests.network.mqtt_peer import (
    PUBACK,
    PUBLISH,
    SUBACK,
    SUBSCRIBE,
    Connection,
    Peer,
    acknowledgement,
    publish_packet,
)
from tests.network.mqtt_rig import Mosquitto
from tests.network.publisher_rig import Script, provision, provision_peer, run, scripted

pytestmark = pytest.mark.slow

OK, TIMEOUT = range(2)
BACK = "/back"


@pytest.fixture
def echoes(mosquitto: Mosquitto) -> Iterator[list[bytes]]:
    """A client that sends each message back with its QoS; the messages that it had."""
    seen: list[bytes] = []

    def send_back(client: paho.Client, _: object, message: paho.MQTTMessage) -> None:
        seen.append(message.payload)
        client.publish(message.topic + BACK, message.payload, message.qos)

    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    client.on_message = send_back
    client.connect("127.0.0.1", mosquitto.ports["tcp"])
    client.subscribe("hil/+/echo", 2)
    client.loop_start()
    yield seen
    client.disconnect()
    client.loop_stop()


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_every_message_comes_back_once_and_in_order(
    session: AgentSession, mosquitto: Mosquitto, echoes: list[bytes], qos: int
) -> None:
    """A healthy echo is done after it was sent, came once, in the order of sending; six digits begin it."""
    provision(session, mosquitto)
    series = run(session, "echo", qos=qos, interval_us=10000, count=30, payload_bytes=1)
    assert set(series.columns["outcome"]) == {OK}
    assert set(series.columns["copies"]) == {1}
    assert series.columns["order"] == tuple(range(1, 32))
    assert echoes == [b"%06dx" % number for number in range(31)]
    check_times(series)


def check_times(series: Series) -> None:
    planned, sent, done = (series.columns[name] for name in ("planned_us", "sent_us", "done_us"))
    assert all(p <= s < d for p, s, d in zip(planned, sent, done, strict=True))


@pytest.mark.parametrize(("payload_bytes", "qos"), [(1000000, 0), (1000000, 1), (100000, 2)])
def test_a_long_message_comes_back_in_pieces(
    session: AgentSession, mosquitto: Mosquitto, echoes: list[bytes], payload_bytes: int, qos: int
) -> None:
    """A message of many in buffers is done at its last byte, and holds its number and filler alone."""
    provision(session, mosquitto)
    length = {"payload_bytes": payload_bytes, "buffer_bytes": 4096}
    series = run(session, "echo", qos=qos, count=2, warmup=0, interval_us=500000, **length)
    assert set(series.columns["outcome"]) == {OK}
    assert echoes == [b"%06d" % number + b"x" * payload_bytes for number in range(2)]
    check_times(series)


def test_copies_and_order_are_as_the_echoes_came(session: AgentSession) -> None:
    """An echo that comes twice counts twice, the first one times it; one that overtakes has the earlier
    place; one that never comes is a timeout with none."""

    def answer(connection: Connection, script: Script) -> None:
        while len(script.messages) < 4:
            packet = connection.read()
            if packet.type == SUBSCRIBE:
                connection.send(bytes([SUBACK << 4, 3]) + packet.id.to_bytes(2, "big") + b"\0")
            elif packet.type == PUBLISH:
                script.messages.append(packet)
                connection.send(acknowledgement(PUBACK, packet.id))
        zero, one, two, _ = (message.payload for message in script.messages)
        for payload in (one, zero, one, two, one):
            connection.send(publish_packet("hil/back", payload, qos=0))
        connection.read()

    with Peer.listen() as peer, scripted(peer, answer):
        provision_peer(session, peer)
        series = run(session, "echo", count=4, warmup=0, interval_us=5000, timeout_ms=500)
    assert series.columns["outcome"] == (OK, OK, OK, TIMEOUT)
    assert series.columns["copies"] == (1, 3, 1, 0)
    assert series.columns["order"] == (2, 1, 3, 0)
    assert series.columns["done_us"][3] == 0


def test_a_run_longer_than_its_clock_is_refused(session: AgentSession, mosquitto: Mosquitto) -> None:
    """More than 32-bit microseconds hold is never measured."""
    provision(session, mosquitto)
    with pytest.raises(ConfigError, match="32-bit microseconds"):
        run(session, "echo", interval_us=60000000, count=100)
