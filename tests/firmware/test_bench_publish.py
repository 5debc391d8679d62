# SPDX-License-Identifier: Apache-2.0
"""The publish bench as the host sees it: the real firmware on the host build, driven over its console."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest
import trustme

from hil.base.errors import ConfigError, FirmwareError, HilError, RigError
from hil.model import Case, Scalar, Series
from hil.session import AgentSession
from tests.firmware import kernel_rig
from tests.firmware.case_defaults import case_defaults
from tests.network.mqtt_peer import Packet, Peer, nothing
from tests.network.mqtt_rig import Mosquitto
from tests.network.publisher_rig import DEADLINE_S, provision, provision_peer

pytestmark = pytest.mark.slow

OK, TIMEOUT, REFUSED, OUTBOX_FULL, OVERRUN = range(5)
RING_SAMPLES = 32
BURST_ROWS = 48 * 1024 // (7 * 4)

DEFAULTS = case_defaults("publish", interval_us=5000, count=20, warmup=2, nodelay=0)


def run(session: AgentSession, **parameters: Scalar) -> Series:
    return session.run_case(Case("publish", {**DEFAULTS, **parameters}), timeout_s=DEADLINE_S)


def check_times(series: Series) -> None:
    """Rows in plan order, each sent after its plan and done after it was sent."""
    planned, sent, done = (series.columns[name] for name in ("planned_us", "sent_us", "done_us"))
    assert list(planned) == sorted(planned)
    assert all(p <= s < d for p, s, d in zip(planned, sent, done, strict=True))


@pytest.mark.parametrize(("transport", "qos"), [("tcp", 0), ("tcp", 1), ("tcp", 2), ("tls", 1), ("mtls", 2)])
def test_every_sample_is_acknowledged(
    session: AgentSession, mosquitto: Mosquitto, transport: str, qos: int
) -> None:
    """Against a healthy broker each sample has plan, send and acknowledgement, at every QoS and transport.

    The end line says what the host did: free memory, and how much each core worked of what was measured.
    """
    provision(session, mosquitto)
    series = run(session, transport=transport, qos=qos)
    assert (series.rows, series.warmup_rows) == (22, 2)
    assert set(series.columns["outcome"]) == {OK}
    check_times(series)
    assert series.device["connects"] == 1
    assert series.device["tls_max_version"] == ("none" if transport == "tcp" else "1.2")
    memory = {key for key in series.device if "stack" in key or "heap" in key}
    assert {"host_stack_free_min_publisher_bytes", "host_stack_free_min_mqtt_task_bytes"} <= memory
    assert all(key.startswith("host_") for key in memory)  # a host's, and no device's
    load = {key: int(str(value)) for key, value in series.device.items() if "cpu_" in key}
    assert load.pop("cpu_mhz") == 240
    wall_us = load.pop("host_cpu_wall_us")
    assert wall_us >= series.columns["done_us"][-1] - series.columns["planned_us"][series.warmup_rows]
    assert set(load) == {"host_cpu_busy_core0_us", "host_cpu_busy_core1_us"}
    assert all(0 < busy_us <= wall_us for busy_us in load.values())


def test_random_plan_repeats_with_its_seed_and_keeps_its_mean(
    session: AgentSession, mosquitto: Mosquitto
) -> None:
    """Intervals are uniform in 0.5 to 1.5 of the mean; the same seed gives the same, another seed others."""
    provision(session, mosquitto)

    def intervals(seed: int) -> list[int]:
        planned = run(session, seed=seed, interval_us=2000, count=200, warmup=0).columns["planned_us"]
        return [b - a for a, b in pairwise(planned)]

    first, again, other = intervals(7), intervals(7), intervals(8)
    assert first == again != other
    assert all(1000 <= interval <= 3000 for interval in first)
    assert abs(sum(first) / len(first) - 2000) < 150  # 3.7 standard errors


def test_a_case_is_as_it_was_asked_for(session: AgentSession, mosquitto: Mosquitto) -> None:
    """schedule=periodic plans every interval exactly; the record says of nodelay what the socket says; with
    api=enqueue the mqtt task gets every message through as well, and the outbox holds them meanwhile."""
    provision(session, mosquitto)
    series = run(session, schedule="periodic", interval_us=4000, nodelay=1)
    assert {b - a for a, b in pairwise(series.columns["planned_us"])} == {4000}
    assert set(series.columns["outcome"]) == {OK}
    enqueued = run(session, api="enqueue", nodelay=0)
    assert [one.device["nodelay"] for one in (series, enqueued)] == [1, 0]
    assert set(enqueued.columns["outcome"]) == {OK}
    assert int(str(enqueued.device["outbox_max_bytes"])) >= 2 * 128


def test_long_case_comes_in_bursts_and_is_whole(session: AgentSession, mosquitto: Mosquitto) -> None:
    """More rows than the buffer holds come as several transfers; the plan goes on, warm-up rows come once."""
    provision(session, mosquitto)
    series = run(session, interval_us=500, count=BURST_ROWS + 100, warmup=3, payload_bytes=80)
    assert (series.rows, series.warmup_rows) == (BURST_ROWS + 103, 3)
    assert list(series.columns["planned_us"]) == sorted(series.columns["planned_us"])


def test_producer_that_outruns_the_publisher_loses_nothing_silently(
    session: AgentSession, mosquitto: Mosquitto
) -> None:
    """A producer slower than its plan keeps the mutex: the ring fills and the rest are overruns."""
    provision(session, mosquitto)
    series = run(session, schedule="periodic", hold_us=4000, interval_us=1000, count=200, warmup=0)
    outcomes = series.columns["outcome"]
    overruns = [row for row, outcome in enumerate(outcomes) if outcome == OVERRUN]
    assert 0 < len(overruns) <= 200 - RING_SAMPLES
    assert all(series.columns["sent_us"][row] == series.columns["done_us"][row] == 0 for row in overruns)
    assert series.rows == 200


def test_missing_acknowledgement_is_a_timeout(session: AgentSession) -> None:
    """What is never acknowledged is a timeout, censored and not dropped; the others keep their times.

    The message is JSON of exactly payload_bytes and names its row.
    """
    messages: list[bytes] = []

    def acknowledge_even_rows(packet: Packet) -> bool:
        if not packet.dup:  # what is not acknowledged comes again
            messages.append(packet.payload)
        return int(json.loads(packet.payload)["n"]) % 2 == 0

    with Peer.listen() as peer, peer.serve(acknowledge_even_rows):
        provision_peer(session, peer)
        series = run(session, timeout_ms=2500, count=20, warmup=0, payload_bytes=100)
    assert series.columns["outcome"] == (OK, TIMEOUT) * 10
    assert [json.loads(message)["n"] for message in messages] == list(range(20))
    assert {len(message) for message in messages} == {100}
    assert all(
        (done == 0) == (outcome == TIMEOUT)
        for done, outcome in zip(series.columns["done_us"], series.columns["outcome"], strict=True)
    )


def test_full_outbox_is_an_outcome(session: AgentSession) -> None:
    """A broker that never acknowledges fills the outbox; what it refuses is outbox_full."""
    with Peer.listen() as peer, peer.serve(nothing):
        provision_peer(session, peer)
        series = run(session, timeout_ms=100, count=10, warmup=0, payload_bytes=8192)
    assert sorted(series.columns["outcome"]) == [TIMEOUT] * 3 + [OUTBOX_FULL] * 7


def test_qos_0_without_a_connection_is_refused(session: AgentSession) -> None:
    """A connection lost in the run makes QoS 0 messages refused ones."""
    with Peer.listen() as peer, peer.serve(nothing, packets_per_connection=5):
        provision_peer(session, peer)
        series = run(session, qos=0, timeout_ms=100, count=40, warmup=0, interval_us=10000)
    assert REFUSED in series.columns["outcome"]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"schedule": "periodic", "interval_us": 1500}, r"INVALID_ARG.*whole number"),
        ({"interval_us": 60000000, "count": 100}, r"INVALID_ARG.*32-bit microseconds"),
        ({"hold_us": 5000}, r"INVALID_ARG.*hold_us .* less than interval_us"),
        (
            {"schedule": "periodic", "hold_us": 1000000, "count": 5000},
            r"INVALID_ARG.*count \* hold_us.*32-bit",
        ),
        ({"transport": "tls"}, r"INVALID_STATE.*broker of transport=tls"),
    ],
)
def test_what_cannot_be_measured_is_the_configurations_fault(
    session: AgentSession, parameters: Mapping[str, Scalar], said: str
) -> None:
    """A plan that no clock can keep, a broker not provisioned: never a series; the sentence says which."""
    with Peer.listen() as gone:
        provision_peer(session, gone)
    with pytest.raises(ConfigError, match=f"board board-1 .*ESP_ERR_{said}"):
        run(session, **parameters)


@pytest.mark.parametrize(
    ("transport", "absent", "said"),
    [("tls", "ca_pem", "CA certificate"), ("mtls", "client_key_pem", "client certificate or its key")],
)
def test_missing_certificate_is_the_configurations_fault(
    session: AgentSession, mosquitto: Mosquitto, transport: str, absent: str, said: str
) -> None:
    """A transport whose certificates the board was not told is not tried."""
    provision(session, mosquitto, without=absent)
    with pytest.raises(ConfigError, match=f"{said} of transport={transport}"):
        run(session, transport=transport)


def test_absent_broker_is_the_rigs_fault(session: AgentSession) -> None:
    """A broker that is down is named by host and port, with what came back."""
    with Peer.listen() as gone:
        port = gone.port
        provision_peer(session, gone)
    said = rf"board-1 .*ESP_ERR_NOT_FOUND .*127\.0\.0\.1:{port} \(tcp\): .*Connection refused"
    with pytest.raises(RigError, match=said):
        run(session)


@pytest.mark.parametrize(
    ("return_code", "owner", "reason"),
    [
        (1, FirmwareError, "unacceptable protocol version"),
        (3, RigError, "server unavailable"),
        (5, RigError, "not authorized"),
    ],
)
def test_refused_connection_is_an_error(
    session: AgentSession, return_code: int, owner: type[HilError], reason: str
) -> None:
    """A refused CONNECT is the rig's fault; one that no broker could accept is the firmware's."""
    with Peer.listen() as peer, peer.serve(nothing, return_code=return_code):
        provision_peer(session, peer)
        said = rf"ESP_ERR_NOT_ALLOWED .*:{peer.port} .*CONNACK code {return_code} \({reason}\)"
        with pytest.raises(owner, match=said):
            run(session)


def test_client_id_is_the_boards_own(session: AgentSession) -> None:
    """CONNECT carries hil- and the whole MAC address, as the topic does, so no two boards share an id."""
    topics: set[str] = set()

    def acknowledge(packet: Packet) -> bool:
        length = int.from_bytes(packet.body[:2], "big")
        topics.add(packet.body[2 : 2 + length].decode())
        return True

    with Peer.listen() as peer, peer.serve(acknowledge):
        provision_peer(session, peer)
        run(session, count=2, warmup=0)
        client_ids = {connection.client_id for connection in peer.accepted}
    (topic,) = topics
    mac = topic.split("/")[1]
    assert re.fullmatch("[0-9a-f]{12}", mac)
    assert client_ids == {f"hil-{mac}"}


def test_timer_lateness_is_of_one_run(firmware: Path) -> None:
    """A host that stopped the board in a run shows in that run's environment and not in the next one's, whose
    own lateness is less. A maximum of both runs would be no less."""
    stopped_s = 0.5

    def stop_once(packet: Packet) -> bool:
        if json.loads(packet.payload)["n"] == 5 and not stopped:
            stopped.append(packet)
            os.kill(pid, signal.SIGSTOP)
            time.sleep(stopped_s)
            os.kill(pid, signal.SIGCONT)
        return True

    stopped: list[Packet] = []
    with kernel_rig.board(firmware) as board, Peer.listen() as peer, peer.serve(stop_once):
        pid, session = board.process.process.pid, board.session
        provision_peer(session, peer)
        first, second = (int(str(run(session, warmup=0).device["timer_lateness_max_us"])) for _ in range(2))
    assert first > stopped_s * 1e6 / 2
    assert second < first


def test_wrong_authority_is_the_rigs_fault(session: AgentSession, mosquitto: Mosquitto) -> None:
    """A broker whose certificate another CA signed is not measured, and the sentence says why."""
    provision(session, mosquitto)
    other = trustme.CA().cert_pem.bytes().decode()
    session.provision({"ca_pem": other})
    said = rf"ESP_ERR_INVALID_RESPONSE .*:{mosquitto.ports['tls']} \(tls\): .*another CA"
    with pytest.raises(RigError, match=said):
        run(session, transport="tls")


@pytest.mark.parametrize("schedule", ["random", "periodic"])
def test_abort_ends_a_run_soon_and_the_next_one_works(
    session: AgentSession, mosquitto: Mosquitto, schedule: str
) -> None:
    """A run whose next plan is a minute away ends at once when the host aborts it."""
    provision(session, mosquitto)
    far = {**DEFAULTS, "schedule": schedule, "interval_us": 60000000, "count": 20, "warmup": 0}
    session.command("run", "publish", *(f"{key}={value}" for key, value in far.items()))
    session.abort()
    deadline = time.monotonic() + 10.0
    while session.info()["state"] == "running":
        assert time.monotonic() < deadline
    assert set(run(session).columns["outcome"]) == {OK}
