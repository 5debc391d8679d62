# SPDX-License-Identifier: Apache-2.0
"""The host's esp-mqtt connects, receives and says goodbye; its scripted broker does what none should, a real
mosquitto over TCP, TLS and mutual TLS what it does.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from tests.network.mqtt_driver import PINGRESP, Driver, connected
from tests.network.mqtt_peer import (
    CONNECT,
    DISCONNECT,
    PINGREQ,
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    Peer,
    publish_packet,
)
from tests.network.mqtt_rig import Mosquitto

pytestmark = pytest.mark.slow


def test_long_message_arrives_in_pieces(driver: Driver, peer: Peer) -> None:
    """A message beyond the in buffer is several DATA events, in order, the topic in the first only."""
    connection = connected(driver, peer, "in=128")
    connection.send(publish_packet("a/b", b"x" * 1000, qos=1, message_id=9))
    received = 0
    while received < 1000:
        event = driver.expect("event DATA")
        assert (int(event["offset"]), event["total"], event["id"]) == (received, "1000", "9")
        assert event["topic"] == ("a/b" if received == 0 else "")
        assert int(event["len"]) <= 128
        received += int(event["len"])
    answer = connection.read()
    assert (answer.type, answer.id) == (PUBACK, 9)


def test_incoming_qos_2_is_answered(driver: Driver, peer: Peer) -> None:
    """A QoS 2 message is delivered and answered by PUBREC, its PUBREL by PUBCOMP."""
    connection = connected(driver, peer)
    connection.send(publish_packet("a/b", b"hello", qos=2, message_id=5))
    assert driver.expect("event DATA")["qos"] == "2"
    assert (connection.read().type, connection.readable_bytes()) == (PUBREC, 0)
    connection.send(bytes([PUBREL << 4 | 2, 2, 0, 5]))
    assert connection.read().type == PUBCOMP


def test_packets_that_arrive_byte_by_byte(driver: Driver, peer: Peer) -> None:
    """It does not matter how TCP cuts a packet."""
    connection = connected(driver, peer)
    for byte in publish_packet("a/b", b"hello", qos=0):
        connection.send(bytes([byte]))
    assert driver.expect("event DATA")["len"] == "5"


HOSTILE = {
    "reserved type": b"\xf0\x00",
    "client's packet": b"\x10\x00",
    "wrong flags": b"\x41\x02\x00\x01",
    "qos 3": b"\x36\x03\x00\x01a",
    "endless length": b"\x30\xff\xff\xff\xff\xff\x01",
    "topic past the end": b"\x30\x04\xff\xffab",
    "no room for the id": b"\x32\x04\x00\x02ab",
    "empty publish": b"\x30\x00",
    "short puback": b"\x40\x01\x00",
    "long puback": b"\x40\x03\x00\x01\x00",
    "empty suback": b"\x90\x02\x00\x01",
    "huge suback": b"\x90\xff\xff\xff\x7f" + b"\x00" * 2000,
    "topic beyond the buffer": b"\x30\xff\x7f\x20\x00" + b"a" * 2000,
    "half a packet": b"\x40\x02\x00",
}


def test_garbage_ends_the_connection_and_nothing_else(driver: Driver, peer: Peer) -> None:
    """Malformed bytes, or a packet that stops halfway, cost the connection; the next one works."""
    connection = connected(driver, peer)
    for what, garbage in HOSTILE.items():
        assert not driver.has("event DISCONNECTED"), f"before {what}"
        connection.send(garbage)
        driver.expect("event DISCONNECTED")
        connection = peer.accept()
        connection.greet()
        driver.expect("event CONNECTED")


def test_connect_packet_says_what_was_configured(driver: Driver, peer: Peer) -> None:
    """Client id, credentials and keepalive are in the CONNECT packet, a clean session by default."""
    driver.connect(peer.uri, "id=board-1 user=me password=secret keepalive=77")
    packet = peer.accept().read()
    assert packet.type == CONNECT
    assert packet.body == b"\x00\x04MQTT\x04\xc2\x00\x4d\x00\x07board-1\x00\x02me\x00\x06secret"


def test_refused_connect_is_an_error_event(driver: Driver, peer: Peer) -> None:
    """A CONNACK with a return code is ERROR (refused, the code), then DISCONNECTED, then a new try."""
    driver.connect(peer.uri)
    for code in (1, 2, 3, 4, 5):
        peer.accept().greet(code)
        error = driver.expect("event ERROR")
        assert (error["type"], error["code"]) == ("2", str(code))
        driver.expect("event DISCONNECTED")
    assert peer.accept().read().type == CONNECT


def test_no_valid_connack_is_a_failed_attempt(driver: Driver, peer: Peer) -> None:
    """Silence, half a CONNACK or something else within the network time-out: the attempt is over."""
    driver.connect(peer.uri, "timeout=300")
    for answer in (b"", b"\x20", b"\x20\x03\x00\x00\x00", b"\x40\x02\x00\x01", b"\x00\x00"):
        connection = peer.accept()
        assert connection.read().type == CONNECT
        connection.send(answer)
        driver.expect("event DISCONNECTED")
    assert peer.accept().read().type == CONNECT


def test_unreachable_broker_is_a_transport_error(driver: Driver) -> None:
    """Nobody listens: ERROR carries ESP_ERR_ESP_TLS_FAILED_CONNECT_TO_HOST and ECONNREFUSED."""
    with Peer.listen() as gone:
        uri = gone.uri
    driver.connect(uri)
    error = driver.expect("event ERROR")
    assert (error["type"], error["esp"], error["errno"]) == ("1", str(0x8004), "111")
    driver.expect("event DISCONNECTED")


def test_ping_keeps_a_live_connection_and_ends_a_dead_one(driver: Driver, peer: Peer) -> None:
    """PINGREQ comes at half the keepalive time; answered it comes again, unanswered the connection ends."""
    connection = connected(driver, peer, "keepalive=2")
    assert connection.read().type == PINGREQ
    connection.send(PINGRESP)
    assert connection.read().type == PINGREQ
    driver.expect("event DISCONNECTED")


def test_stop_says_goodbye(driver: Driver, peer: Peer) -> None:
    """stop sends DISCONNECT and ends the task; the client can be started again."""
    connection = connected(driver, peer)
    driver.say("stop")
    assert connection.read().type == DISCONNECT
    connection.close()
    assert driver.expect("result stop")["value"] == "0"
    assert driver.ask("start") == 0
    assert peer.accept().read().type == CONNECT


def test_disconnect_says_goodbye_and_reconnect_is_on_request(driver: Driver, peer: Peer) -> None:
    """Without automatic reconnect the client stays away until it is asked back."""
    connection = connected(driver, peer, "auto=0")
    assert driver.ask("reconnect") == -1
    assert driver.ask("disconnect") == 0
    connection.send(PINGRESP)
    assert connection.read().type == DISCONNECT
    driver.expect("event DISCONNECTED")
    assert driver.ask("reconnect") == 0
    assert peer.accept().read().type == CONNECT


@pytest.mark.parametrize("nodelay", [0, 1])
def test_socket_options_are_reached_through_the_transport(driver: Driver, peer: Peer, nodelay: int) -> None:
    """After CONNECTED TCP_NODELAY can be set on the transport's socket; the segment size is lwIP's."""
    driver.ask(f"nodelay {nodelay}")
    connected(driver, peer)
    options = driver.expect("socket")
    assert options["nodelay"] == str(nodelay)
    assert 0 < int(options["mss"]) <= 1440


@pytest.mark.parametrize(("transport", "qos"), [("tcp", 0), ("tcp", 1), ("tcp", 2), ("tls", 1), ("mtls", 2)])
def test_message_makes_the_round_trip(driver: Driver, mosquitto: Mosquitto, transport: str, qos: int) -> None:
    """At every QoS and over every transport a message reaches mosquitto and comes back whole."""
    driver.connect(mosquitto.uri(transport), mosquitto.options(transport))
    driver.expect("event CONNECTED")
    assert driver.ask("subscribe hil/loop 2") > 0
    assert driver.expect("event SUBSCRIBED")["failed"] == "0"
    message_id = driver.ask(f"publish hil/loop 700 {qos} 0")
    assert (message_id == 0) == (qos == 0)
    data = driver.expect("event DATA")
    assert (data["topic"], data["len"], data["total"]) == ("hil/loop", "700", "700")
    if qos > 0:
        assert int(driver.expect("event PUBLISHED")["id"]) == message_id
    assert driver.ask("outbox") == 0


def test_message_from_an_event_handler(driver: Driver, mosquitto: Mosquitto) -> None:
    """The API lock is recursive: a handler may publish."""
    driver.connect(mosquitto.uri("tcp"))
    driver.expect("event CONNECTED")
    driver.ask("echo hil/echo")
    first = driver.ask("publish hil/a 10 1 0")
    assert int(driver.expect("event PUBLISHED")["id"]) == first
    second = int(driver.expect("result echo")["value"])
    assert int(driver.expect("event PUBLISHED")["id"]) == second != first


@pytest.mark.parametrize(
    ("where", "options", "told"),
    [
        # A certificate of another authority, or of another host: with mbedTLS's bit for it.
        ("tls", "ca={other}", {"type": "1", "esp": "32794", "flags": "8"}),
        ("tls localhost", "{tls}", {"esp": "32794", "flags": "4"}),
        # Without a CA nothing is verified, so nothing is connected: ESP_ERR_MBEDTLS_SSL_SETUP_FAILED.
        ("tls", "", {"esp": "32791"}),
        # A broker that asks for a client certificate refuses a client without one.
        ("mtls", "{tls}", {"type": "1"}),
    ],
)
def test_whom_a_certificate_does_not_vouch_for_is_refused(
    driver: Driver, mosquitto: Mosquitto, tmp_path: Path, where: str, options: str, told: dict[str, str]
) -> None:
    """An attempt to connect ends with an error that says why."""
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    transport, _, host = where.partition(" ")
    uri = mosquitto.uri(transport).replace("127.0.0.1", host or "127.0.0.1")
    driver.connect(uri, options.format(other=tmp_path / "other.pem", tls=mosquitto.options("tls")))
    assert driver.expect("event ERROR").items() >= told.items()
    driver.expect("event DISCONNECTED")


def test_expired_certificate_is_refused(driver: Driver, authority: trustme.CA, tmp_path: Path) -> None:
    """Dates are checked by the machine's clock (CONFIG_MBEDTLS_HAVE_TIME_DATE): mbedTLS's expired bit."""
    past = datetime(2001, 1, 1, tzinfo=UTC)
    with Mosquitto.run(tmp_path, authority, server_not_after=past) as expired:
        driver.connect(expired.uri("tls"), expired.options("tls"))
        error = driver.expect("event ERROR")
        assert (error["esp"], error["flags"]) == (str(0x801A), "1")
