# SPDX-License-Identifier: Apache-2.0
"""The host's esp-mqtt publishes and sends again, before a scripted broker that sees every byte."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme

from tests.network.mqtt_driver import PINGRESP, Driver, connected
from tests.network.mqtt_peer import (
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    Packet,
    Peer,
    TlsPeer,
    acknowledgement,
    unsent_bytes,
)

pytestmark = pytest.mark.slow

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
    assert (release.type, release.flags, release.id) == (PUBREL, 2, message_id)
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
