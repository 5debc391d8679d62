# SPDX-License-Identifier: Apache-2.0
"""The delivery and echo benches as the host sees them: the real firmware against brokers, real and
scripted.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import paho.mqtt.client as paho
import pytest

from hil.base.errors import ConfigError
from hil.model import Series
from hil.session import AgentSession
from hil.thresholds.loader import load
from tests.boards.rack_tools import CHECKOUT
from tests.network.mqtt_peer import (
    PUBACK,
    PUBLISH,
    SUBACK,
    SUBSCRIBE,
    Connection,
    Peer,
    acknowledgement,
    nothing,
    publish_packet,
)
from tests.network.mqtt_rig import Mosquitto
from tests.network.publisher_rig import (
    Script,
    provision,
    provision_peer,
    reset,
    run,
    scripted,
    swallow,
)

OK, TIMEOUT, REFUSED, OUTBOX_FULL, OVERRUN = range(5)
NOTHING, NEVER_TRANSMITTED, TRANSMITTED, ACKNOWLEDGED, UNKNOWN = range(5)
BURST_ROWS = 48 * 1024 // (9 * 4)
MESSAGE_OF_400_BYTES = 3 + 2 + len("hil/0123456789ab/delivery") + 400
COMMAND_BYTES = 1024  # firmware/components/agent/wire.h, WIRE_COMMAND_SIZE


def tcp_of(series: Series, outcome: int = OK) -> list[int]:
    """Codes of the rows with this outcome."""
    columns = series.columns
    return [tcp for tcp, found in zip(columns["tcp"], columns["outcome"], strict=True) if found == outcome]


@pytest.mark.parametrize("bench", ["delivery", "echo"])
def test_the_longest_command_fits_a_line(bench: str) -> None:
    """Every parameter at its longest, with tag and checksum, is a command that the board takes."""
    domains = load(bench, CHECKOUT / "thresholds").parameters
    longest = {
        name: max((str(word) for word in (*domain.choices, domain.minimum, domain.maximum)), key=len)
        for name, domain in domains.items()
    }
    words = [f"{name}={value}" for name, value in longest.items()]
    line = f"#{'t' * 23} run {bench} {' '.join(words)} *01234567"
    assert len(line) < COMMAND_BYTES
    assert len(words) <= 32


@pytest.mark.slow
@pytest.mark.parametrize(("transport", "qos"), [("tcp", 0), ("tcp", 1), ("tcp", 2), ("tls", 1), ("mtls", 2)])
def test_every_message_of_a_healthy_path_is_acknowledged_by_tcp(
    session: AgentSession, mosquitto: Mosquitto, transport: str, qos: int
) -> None:
    """Each row is done on connection 1 and acknowledged by TCP, with TLS as without; the end line says so.

    Retransmits are counted and not forbidden: of a host that is busy for longer than the kernel's loss probe
    waits, a segment is sent twice.
    """
    provision(session, mosquitto)
    series = run(session, "delivery", transport=transport, qos=qos, interval_us=4000, count=30)
    assert set(series.columns["outcome"]) == {OK}
    assert set(series.columns["connection"]) == {1}
    assert set(series.columns["tcp"]) == {ACKNOWLEDGED}
    told = {key: int(str(value)) for key, value in series.device.items() if key.startswith("tcp_")}
    assert (told["tcp_unsent_bytes"], told["tcp_unacked_bytes"]) == (0, 0)
    assert "tcp_retransmits" in told
    assert told["tcp_rto_us"] > 0
    assert told["tcp_cwnd_bytes"] > 0


@pytest.mark.slow
def test_messages_are_numbered_over_all_bursts(session: AgentSession) -> None:
    """A message is JSON of exactly payload_bytes: the row's number from 0, one nonce, its planned time."""

    def note(connection: Connection, script: Script) -> None:
        script.read_until(connection, BURST_ROWS + 50)  # fewer come where a busy host overruns some

    with Peer.listen() as peer, scripted(peer, note) as script:
        provision_peer(session, peer)
        rows = {"count": BURST_ROWS + 50, "warmup": 0, "interval_us": 500, "payload_bytes": 90}
        series = run(session, "delivery", qos=0, timeout_ms=1000, **rows)
    assert series.rows == BURST_ROWS + 50
    sent = [row for row, outcome in enumerate(series.columns["outcome"]) if outcome == OK]
    seen = [json.loads(packet.payload) for packet in script.messages]
    assert {len(packet.payload) for packet in script.messages} == {90}
    assert [message["n"] for message in seen] == sent[: len(seen)]
    assert {message["run"] for message in seen} == {series.device["message_run"]}
    assert [message["planned_us"] for message in seen] == [
        series.columns["planned_us"][message["n"]] for message in seen
    ]


@pytest.mark.slow
@pytest.mark.needs_root  # some kernels let nobody else put a filter before a socket
def test_a_peer_that_swallows_everything_leaves_messages_transmitted_only(session: AgentSession) -> None:
    """What the peer read is acknowledged; what was sent into the void is transmitted; what TCP still holds on
    a living connection is unknown. The kernel's byte counts are the sums of the rows'. A busy host overruns
    some of the messages: these have no code."""

    def go_deaf(connection: Connection, script: Script) -> None:
        script.read_until(connection, 10)
        swallow(connection)

    with Peer.listen() as peer, scripted(peer, go_deaf) as script:
        provision_peer(session, peer)
        timing = {"interval_us": 40000, "count": 32, "warmup": 0, "timeout_ms": 100}
        series = run(session, "delivery", qos=0, payload_bytes=80, **timing)
        length = len(script.messages[0].body) + 2
    codes = tcp_of(series)
    assert sorted(series.columns["tcp"]) == sorted([*codes, *[NOTHING] * (32 - len(codes))])
    assert codes == sorted(codes, key=(ACKNOWLEDGED, TRANSMITTED, UNKNOWN).index)
    assert {TRANSMITTED, UNKNOWN} <= set(codes)
    assert len(script.messages) <= codes.count(ACKNOWLEDGED) <= len(script.messages) + 2
    assert codes.count(UNKNOWN) * length == series.device["tcp_unsent_bytes"]
    assert (codes.count(UNKNOWN) + codes.count(TRANSMITTED)) * length == series.device["tcp_unacked_bytes"]
    assert int(str(series.device["tcp_retransmits"])) > 0


@pytest.mark.slow
def test_a_reset_proves_what_was_never_transmitted(session: AgentSession) -> None:
    """Behind a closed window TCP holds messages back; once the connection is reset none of them can leave.
    Each that came whole to the peer is acknowledged, every other one that was taken was not transmitted."""
    came_bytes: list[int] = []

    def close_window_and_reset(connection: Connection, script: Script) -> None:
        del script
        connection.wait_until_window_is_full()
        came_bytes.append(connection.readable_bytes())
        reset(connection)

    with Peer.listen() as peer, scripted(peer, close_window_and_reset):
        peer.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
        provision_peer(session, peer)
        timing = {"interval_us": 2000, "count": 60, "warmup": 0, "reconnect_ms": 2000}
        series = run(session, "delivery", qos=0, payload_bytes=400, **timing)
    codes = tcp_of(series)
    arrived = came_bytes[0] // MESSAGE_OF_400_BYTES
    assert 0 < arrived < len(codes)
    assert codes[:arrived] == [ACKNOWLEDGED] * arrived
    assert codes[arrived:] == [NEVER_TRANSMITTED] * (len(codes) - arrived)


@pytest.mark.slow
def test_a_client_that_gives_up_leaves_what_tcp_holds_unknown(session: AgentSession) -> None:
    """Behind a closed window the client closes its socket after the network time-out, but TCP goes on alone:
    that nothing of it will leave cannot be known, and is not said."""

    def close_window(connection: Connection, script: Script) -> None:
        del script
        connection.wait_until_window_is_full()

    with Peer.listen() as peer, scripted(peer, close_window):
        peer.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
        provision_peer(session, peer)
        timing = {"interval_us": 2000, "count": 60, "warmup": 0, "network_timeout_ms": 500}
        series = run(session, "delivery", qos=0, payload_bytes=400, reconnect_ms=2000, **timing)
    codes = tcp_of(series)
    assert set(codes) == {ACKNOWLEDGED, UNKNOWN}
    assert set(tcp_of(series, REFUSED)) == {NOTHING}


@pytest.mark.slow
def test_without_a_connection_nothing_is_written(session: AgentSession) -> None:
    """QoS 0 without a connection is refused: connection 0, nothing written."""

    def leave(connection: Connection, script: Script) -> None:
        script.read_until(connection, 5)
        connection.close()

    with Peer.listen() as peer, scripted(peer, leave):
        provision_peer(session, peer)
        series = run(session, "delivery", qos=0, count=30, warmup=0, reconnect_ms=2000, timeout_ms=500)
    last = {name: series.columns[name][-1] for name in ("outcome", "connection", "tcp", "done_us")}
    assert last == {"outcome": REFUSED, "connection": 0, "tcp": NOTHING, "done_us": 0}


@pytest.mark.slow
def test_what_is_sent_again_is_unknown_unless_it_was_acknowledged(session: AgentSession) -> None:
    """QoS 1 over connections that end: what was acknowledged was transmitted, the rest is not proven."""
    with Peer.listen() as peer, peer.serve(lambda packet: packet.id % 3 != 0, packets_per_connection=8):
        provision_peer(session, peer)
        timing = {"interval_us": 10000, "count": 60, "warmup": 0, "reconnect_ms": 100, "timeout_ms": 1500}
        series = run(session, "delivery", qos=1, **timing)
    assert int(str(series.device["connects"])) > 1
    assert set(tcp_of(series, OK)) == {ACKNOWLEDGED}
    assert NEVER_TRANSMITTED not in series.columns["tcp"]


@pytest.mark.slow
def test_enqueued_messages_are_unknown(session: AgentSession, mosquitto: Mosquitto) -> None:
    """api=enqueue only stores: when the mqtt task writes it the bench does not see."""
    provision(session, mosquitto)
    series = run(session, "delivery", qos=0, api="enqueue", count=5, warmup=0, interval_us=10000)
    assert set(series.columns["tcp"]) == {UNKNOWN}


@pytest.mark.slow
def test_inflight_bounds_what_is_unacknowledged(session: AgentSession) -> None:
    """With inflight=2 the third message waits for an acknowledgement; the plan stays as it was."""
    most: list[int] = []

    def acknowledge_late(connection: Connection, script: Script) -> None:
        while len(script.messages) < 20:
            script.read_until(connection, min(20, len(script.messages) + 2))
            connection.sock.settimeout(0.05)
            try:
                packet = connection.read()
            except TimeoutError:
                packet = None
            connection.sock.settimeout(10)
            most.append(2 + (packet is not None and packet.type == PUBLISH))
            for message in script.messages[-2:]:
                connection.send(acknowledgement(PUBACK, message.id))

    with Peer.listen() as peer, scripted(peer, acknowledge_late):
        provision_peer(session, peer)
        series = run(session, "delivery", inflight=2, interval_us=5000, count=20, warmup=0)
    assert set(most) == {2}
    assert set(series.columns["outcome"]) == {OK}
    lateness = [s - p for s, p in zip(series.columns["sent_us"], series.columns["planned_us"], strict=True)]
    assert lateness[-1] > 100_000


@pytest.mark.slow
def test_late_acknowledgements_make_no_room(session: AgentSession) -> None:
    """With inflight=1 a message that no longer counts is acknowledged: there still is one at a time."""
    came_early: list[bool] = []

    def acknowledge_late(connection: Connection, script: Script) -> None:
        script.read_until(connection, 2)  # the next but one, after the first one's time-out
        for message in script.messages:
            connection.send(acknowledgement(PUBACK, message.id))
        script.read_until(connection, 3)
        connection.sock.settimeout(0.2)
        try:
            came_early.append(connection.read().type == PUBLISH)
        except TimeoutError:
            came_early.append(False)
        connection.sock.settimeout(10)
        connection.send(acknowledgement(PUBACK, script.messages[2].id))
        script.read_until(connection, 4)
        connection.send(acknowledgement(PUBACK, script.messages[3].id))

    with Peer.listen() as peer, scripted(peer, acknowledge_late):
        provision_peer(session, peer)
        timing: dict[str, int] = {"interval_us": 200_000, "timeout_ms": 450}
        series = run(session, "delivery", inflight=1, count=5, warmup=0, schedule="periodic", **timing)
    assert came_early == [False]
    assert series.columns["outcome"][:2] == (TIMEOUT, OVERRUN)  # the rest is as quick as this machine answers


@pytest.mark.slow
def test_settings_reach_the_client(session: AgentSession) -> None:
    """clean_session is in CONNECT, and the outbox is as large as it was said to be."""
    with Peer.listen() as peer, peer.serve(nothing):
        provision_peer(session, peer)
        limits = {"outbox_limit_bytes": 1000, "payload_bytes": 300, "timeout_ms": 100}
        series = run(session, "delivery", count=10, warmup=0, clean_session=0, **limits)
        (connection,) = peer.accepted
    outcomes = series.columns["outcome"]
    assert outcomes[:4] == (TIMEOUT, TIMEOUT, TIMEOUT, OUTBOX_FULL)
    assert set(outcomes[4:]) <= {OUTBOX_FULL, OVERRUN}  # a busy host comes too late for some
    assert not connection.clean_session


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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_run_longer_than_its_clock_is_refused(session: AgentSession, mosquitto: Mosquitto) -> None:
    """More than 32-bit microseconds hold is never measured."""
    provision(session, mosquitto)
    with pytest.raises(ConfigError, match="32-bit microseconds"):
        run(session, "echo", interval_us=60000000, count=100)
