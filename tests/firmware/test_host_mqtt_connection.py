# SPDX-License-Identifier: Apache-2.0
"""The host's esp-mqtt connects, publishes, receives and says goodbye; its scripted broker does what none
should, a real mosquitto over TCP, TLS and mutual TLS what it does.
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
    PUBLISH,
    PUBREC,
    PUBREL,
    Packet,
    Peer,
    TlsPeer,
    acknowledgement,
    publish_packet,
    unsent_bytes,
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


OUT_BUFFER_BYTES = 256
SEND_BUFFER_BYTES = 5760  # CONFIG_LWIP_TCP_SND_BUF_DEFAULT


def test_publish_has_written_when_it_returns(driver: Driver, peer: Peer) -> None:
    """publish returns once its bytes are in the socket: they are at the peer although nobody else ran."""
    connection = connected(driver, peer)
    driver.ask("publish t/a 100 1 0")
    assert connection.readable_bytes() == 2 + 5 + 2 + 100


def test_publish_blocks_the_caller_while_the_broker_does_not_read(driver: Driver, peer: Peer) -> None:
    """A payload beyond all buffers holds its caller, and never more than lwIP's send buffer is on the way."""
    connection = connected(driver, peer)
    driver.say("publish t/a 100000 1 0")
    connection.wait_until_window_is_full()
    assert not driver.has("result publish")
    assert 0 < unsent_bytes(connection.peer_port) <= SEND_BUFFER_BYTES
    packet = connection.read()
    assert len(packet.payload) == 100000
    assert int(driver.expect("result publish")["value"]) == packet.id


def test_publish_gives_up_after_the_network_timeout(driver: Driver, peer: Peer) -> None:
    """A write that gets nowhere for network.timeout_ms fails and ends the connection; the message stays."""
    connected(driver, peer, "timeout=500")
    assert driver.ask("publish t/a 100000 1 0") == -1
    assert driver.has("event DISCONNECTED")
    again = peer.accept()
    again.greet()
    assert len(again.read().payload) == 100000


def test_long_payload_is_written_in_pieces_of_the_out_buffer(driver: Driver, tmp_path: Path) -> None:
    """Each piece of a long publish is a transport write of its own, seen as a TLS record of its own."""
    authority = trustme.CA()
    with TlsPeer.listen(authority) as tls_peer:
        ca = tmp_path / "ca.pem"
        authority.cert_pem.write_to_path(str(ca))
        driver.connect(tls_peer.uri, f"ca={ca} out={OUT_BUFFER_BYTES}")
        connection = tls_peer.accept()
        connection.greet()
        driver.expect("event CONNECTED")
        connection.forget_records()
        driver.ask("publish t/a 1000 1 0")
        packet = connection.read()
        assert len(packet.payload) == 1000
        # The first piece leaves room for the longest header: 256 - 5 bytes and the 3 of this header.
        assert connection.record_lengths() == [254, 256, 256, 244]
        assert connection.session_reused is False


def test_published_comes_with_the_last_acknowledgement(driver: Driver, peer: Peer) -> None:
    """At QoS 1 the PUBLISHED event is the PUBACK's, dispatched from the mqtt task and not from the caller; at
    QoS 2 PUBREC is answered by PUBREL, and only PUBCOMP makes it."""
    connection = connected(driver, peer)
    driver.say("publish t/a 10 1 0")
    caller = driver.expect("result publish")["tid"]
    packet = connection.read()
    assert (packet.type, packet.qos, packet.dup) == (PUBLISH, 1, False)
    assert not driver.has("event PUBLISHED")
    connection.send(acknowledgement(PUBACK, packet.id))
    event = driver.expect("event PUBLISHED")
    assert int(event["id"]) == packet.id
    assert event["tid"] != caller
    message_id = driver.ask("publish t/a 10 2 0")
    assert connection.read().id == message_id
    connection.send(acknowledgement(PUBREC, message_id))
    release = connection.read()
    assert (release.type, release.first & 0xF, release.id) == (PUBREL, 2, message_id)
    assert not driver.has("event PUBLISHED")
    connection.send(acknowledgement(PUBCOMP, message_id))
    assert int(driver.expect("event PUBLISHED")["id"]) == message_id


def test_full_outbox_refuses_with_minus_two(driver: Driver, peer: Peer) -> None:
    """Beyond outbox.limit QoS 1 is -2, by publish and by enqueue; QoS 0 does not use the outbox."""
    connected(driver, peer, "outbox=1000")
    assert driver.ask("publish t/a 600 1 0") > 0
    assert driver.ask("publish t/a 600 1 0") == -2
    assert driver.ask("enqueue t/a 600 1 0 0") == -2
    assert driver.ask("publish t/a 600 0 0") == 0


def test_enqueued_messages_are_sent_by_the_task_one_a_loop(driver: Driver, peer: Peer) -> None:
    """enqueue only stores; a loop of the mqtt task, here begun by an incoming packet, sends one message."""
    connection = connected(driver, peer)
    first = driver.ask("enqueue t/a 10 1 0 0")
    second = driver.ask("enqueue t/a 10 1 0 0")
    assert connection.readable_bytes() == 0
    connection.send(PINGRESP)
    assert connection.read().id == first
    assert connection.readable_bytes() == 0
    connection.send(PINGRESP)
    assert connection.read().id == second


def test_enqueue_takes_qos_0_only_with_store(driver: Driver, peer: Peer) -> None:
    """A QoS 0 message is enqueued with store=true, and gone from the outbox once sent."""
    connection = connected(driver, peer)
    assert driver.ask("enqueue t/a 10 0 0 0") == -1
    assert driver.ask("enqueue t/a 10 0 0 1") == 0
    assert driver.ask("outbox") > 0
    connection.send(PINGRESP)
    assert connection.read().qos == 0
    assert driver.ask("outbox") == 0


def test_without_a_connection_qos_0_is_lost_and_qos_1_is_kept(driver: Driver, peer: Peer) -> None:
    """Not connected: QoS 0 is -1, QoS 1 is stored and goes out, not as a duplicate, once connected."""
    driver.connect(peer.uri)
    connection = peer.accept()
    connection.close()
    driver.expect("event DISCONNECTED")
    assert driver.ask("publish t/a 10 0 0") == -1
    message_id = driver.ask("publish t/a 10 1 0")
    again = peer.accept()
    again.greet()
    packet = again.read()
    assert (packet.id, packet.dup) == (message_id, False)


def test_sdkconfig_says_where_the_task_is_and_how_ids_go(driver: Driver, peer: Peer) -> None:
    """With CONFIG_MQTT_USE_CORE_0 the events come from a task that is pinned to core 0; with
    CONFIG_MQTT_MSG_ID_INCREMENTAL an id does not come back before all others were used."""
    driver.connect(peer.uri)
    peer.accept().greet()
    assert driver.expect("event CONNECTED")["core"] == "0"
    first = driver.ask("publish t/a 10 1 0")
    assert [driver.ask("publish t/a 10 1 0") for _ in range(3)] == [first + 1, first + 2, first + 3]


def test_unacknowledged_message_is_sent_again_as_a_duplicate(driver: Driver, peer: Peer) -> None:
    """Each retransmit time-out the oldest message, and it alone, comes again with DUP."""
    connection = connected(driver, peer, "retransmit=100")
    oldest = driver.ask("publish t/a 10 1 0")
    other = driver.ask("publish t/a 20 1 0")
    assert [connection.read().id, connection.read().id] == [oldest, other]
    for _ in range(2):
        again = connection.read()
        assert (again.id, again.dup, len(again.payload)) == (oldest, True, 10)
    connection.send(acknowledgement(PUBACK, oldest))
    assert int(driver.expect("event PUBLISHED")["id"]) == oldest
    while (packet := connection.read()).id == oldest:
        continue  # one that had left before the PUBACK came
    assert (packet.id, packet.dup) == (other, True)


def test_pubrel_is_sent_again(driver: Driver, peer: Peer) -> None:
    """A QoS 2 message that got its PUBREC is not sent again; its PUBREL is."""
    connection = connected(driver, peer, "retransmit=100")
    message_id = driver.ask("publish t/a 10 2 0")
    connection.read()
    connection.send(acknowledgement(PUBREC, message_id))
    assert [connection.read().type, connection.read().type] == [PUBREL, PUBREL]


def test_message_in_flight_survives_a_lost_connection(driver: Driver, peer: Peer) -> None:
    """The broker goes before its PUBACK: the client comes back and sends the message again with DUP."""
    connection = connected(driver, peer, "retransmit=100")
    message_id = driver.ask("publish t/a 10 1 0")
    connection.read()
    connection.close()
    driver.expect("event DISCONNECTED")
    again = peer.accept()
    again.greet()
    driver.expect("event CONNECTED")
    packet = again.read()
    assert (packet.id, packet.dup) == (message_id, True)
    again.send(acknowledgement(PUBACK, message_id))
    assert int(driver.expect("event PUBLISHED")["id"]) == message_id


def test_acknowledgement_of_nothing_is_no_event(driver: Driver, peer: Peer) -> None:
    """A PUBACK for an id that is not in the outbox is passed over."""
    connection = connected(driver, peer)
    connection.send(acknowledgement(PUBACK, 4711))
    message_id = driver.ask("publish t/a 10 1 0")
    connection.send(acknowledgement(PUBACK, message_id))
    assert int(driver.expect("event PUBLISHED")["id"]) == message_id


def test_two_messages_make_two_packets(driver: Driver, peer: Peer) -> None:
    """What one caller publishes in turn arrives in turn, each packet whole."""
    connection = connected(driver, peer)
    ids = [driver.ask(f"publish t/a {size} 1 0") for size in (10, 3000)]
    packets: list[Packet] = [connection.read(), connection.read()]
    assert [(p.id, len(p.payload)) for p in packets] == [(ids[0], 10), (ids[1], 3000)]
    pattern = bytes(ord("a") + i % 26 for i in range(3000))
    assert packets[1].payload == pattern
