# SPDX-License-Identifier: Apache-2.0
"""The host's side of http_gateway: a real broker, echo server and requester, and a board that is not one."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import ssl
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hil.network.broker import Broker
from hil.network.name_server import PEER_NAME
from hil.network.peers.gateway.companion import GatewayCompanion
from hil.network.peers.gateway.joining import metadata_of, summarise
from hil.network.peers.gateway.plan import RequesterPlan
from tests.boards.rack_tools import running_rack
from tests.lab import ROOT, make_lab, of_type
from tests.network.gateway_rig import DEADLINE_S, TOPICS, Bench, lines_of, plan_of, requester_argv
from tests.network.mqtt_peer import PUBACK, SUBACK, Peer, publish_packet
from tests.network.places import LOOPBACK
from tests.reports.rtt_files import read_rtt_csv


@pytest.mark.slow
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_server_echoes_keeps_alive_and_resumes(
    bench: Bench, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    """It echoes as JSON, answers /probe briefly, keeps a connection, and takes a TLS ticket back."""
    companion = GatewayCompanion(bench.place(tmp_path / "place"))
    context = ssl.create_default_context(cafile=str(bench.certificates.ca_file))
    context.minimum_version = context.maximum_version = version
    try:
        told = companion.start()
        session: ssl.SSLSession | None = None
        for resumed in (False, True):
            with socket.create_connection((LOOPBACK, int(told["peer_tls_port"])), DEADLINE_S) as plain:
                sock = context.wrap_socket(plain, server_hostname=PEER_NAME, session=session)
                client = http.client.HTTPConnection("unused")
                client.sock = sock
                for _ in range(2):
                    client.request("POST", "/a/b?c=d", b"text", {"X-Request-Id": "7", "Some": "thing"})
                    echo = json.loads(client.getresponse().read())
                client.request("GET", "/probe")
                assert len(client.getresponse().read()) < 16
                session = sock.session
                sock.close()
            assert (echo["method"], echo["path"], echo["query"]) == ("POST", "/a/b", "c=d")
            assert (echo["body"], echo["headers"]["some"], echo["protocol"]) == ("text", "thing", "https")
            assert (echo["session_reused"], type(echo["server_us"])) == (resumed, int)
    finally:
        companion.stop()
    served = [line for line in lines_of(tmp_path / "place", "echo-server") if line["event"] == "request"]
    assert [(line["connection"], line["id"]) for line in served[:3]] == [(1, "7"), (1, "7"), (1, "")]


@pytest.mark.slow
def test_a_case_is_joined_from_three_sides(bench: Bench, tmp_path: Path) -> None:
    """Each request is a row with the requester's times, the board's parts and the server's own time.

    rtt.csv and metadata.json have the study's published fields, and follow from the rows that are read back.
    """
    folder = tmp_path / "case"
    outcome, board = bench.measure(folder, http="https")
    columns = outcome.series.columns
    assert columns["phase"] == (1, 1, 1, 2, 2)
    assert columns["read"] == (1, 2, 3, 1, 2)
    assert set(columns["outcome"]) == {0}
    assert columns["reused"] == (0, 1, 1, 0, 1)
    assert columns["resumed"] == (0, 0, 0, 1, 0)
    for row in range(5):
        planned, sent, done = (columns[f"{name}_us"][row] for name in ("planned", "sent", "done"))
        assert planned <= sent < done
        assert columns["rtt_us"][row] == done - sent
        assert columns["rtt_us"][row] > columns["board_us"][row] > columns["http_us"][row]
        assert columns["http_us"][row] > columns["server_us"][row] > 0
    assert columns["first_rtt_us"] == (columns["rtt_us"][0], 0, 0, columns["rtt_us"][3], 0)
    for name in ("connect_us", "connack_us", "suback_us"):
        assert [value > 0 for value in columns[name]] == [True, False, False, True, False]
    assert columns["board_connack_us"] == (11, 0, 0, 0, 0)
    assert columns["board_suback_us"] == (0, 0, 0, 23, 0)
    assert board.connects == 2
    assert (outcome.series.warmup_rows, outcome.series.rows) == (0, 5)
    facts = outcome.environment
    assert (facts["suback_awaited"], facts["requests_count"], facts["late_answers_count"]) == (1, 5, 0)
    assert (facts["tls_connections_count"], facts["tls_resumed_count"]) == (2, 1)
    assert facts["agentoptions_phase2_suback_us"] == columns["suback_us"][3]
    (run,) = folder.glob("run_*")
    rows = read_rtt_csv(run / "rtt.csv")
    assert [row.phase for row in rows] == ["phase1"] * 3 + ["phase2"] * 2
    assert [(row.phase_read, row.iteration) for row in rows] == [(1, 1), (2, 2), (3, 3), (1, 4), (2, 5)]
    assert [row.rtt_payload_ms for row in rows] == [us // 1000 for us in columns["payload_us"]]
    metadata = json.loads((run / "metadata.json").read_text())
    plan = RequesterPlan.read(folder / "requester-plan.json")
    again = metadata_of(rows, plan, TOPICS.endpoint("agentoptions"), csv_path=f"{run.name}/rtt.csv")
    assert {**again, "generatedAt": ""} == {**metadata, "generatedAt": ""}
    assert metadata["phaseRttMs"]["phase2"]["receive"]["count"] == 2


@pytest.mark.slow
def test_suback_comes_before_the_first_request(tmp_path: Path) -> None:
    """Even a board that is ready is not asked before the broker has acknowledged the subscription."""
    with Peer.listen() as peer:
        plan_of(peer.port, timeout_ms=5000).write(tmp_path / "plan.json")
        with subprocess.Popen(requester_argv(tmp_path), cwd=ROOT) as requester:
            try:
                connection = peer.accept()
                connection.greet()
                subscribe = connection.read()
                connection.send(publish_packet(TOPICS.ready, b'{"phase":1}', qos=1, message_id=7))
                assert connection.read().type == PUBACK
                assert [line["event"] for line in lines_of(tmp_path)] == ["start"]
                connection.send(bytes([SUBACK << 4, 4, *subscribe.body[:2], 0, 1]))
                assert TOPICS.request("tight").encode() in connection.read().body
                events = [line["event"] for line in lines_of(tmp_path)]
                assert events == ["start", "connected", "listening", "ready"]
            finally:
                requester.kill()


@pytest.mark.slow
def test_a_board_says_only_once_that_it_is_ready(bench: Bench, tmp_path: Path) -> None:
    """Who starts after the companion is heard from its first word on, and asked without a repetition."""
    changes = {"reads_after_reconnect": 0, "profile": "all", "order": "interleaved"}
    outcome, board = bench.measure(tmp_path / "case", "ready-once", **changes)
    assert set(outcome.series.columns["outcome"]) == {0}
    assert board.told == 1


@pytest.mark.slow
@pytest.mark.parametrize("order", ["together", "interleaved"])
def test_three_profiles_take_turns_or_go_at_once(bench: Bench, tmp_path: Path, order: str) -> None:
    """Together: each read is due at one instant for all. Interleaved: one after another, one under way."""
    outcome, _ = bench.measure(tmp_path / "case", profile="all", order=order, pause_ms=20)
    columns = outcome.series.columns
    rows = list(zip(columns["phase"], columns["read"], strict=True))
    rounds = sorted(set(rows))
    assert len(rows) == 15
    if order == "together":
        assert len(set(columns["planned_us"])) == len(rounds) == 5
    else:
        assert columns["profile"] == (0, 1, 2) * 5
        assert all(
            done <= sent for done, sent in zip(columns["done_us"], columns["sent_us"][1:], strict=False)
        )
    folders = sorted(path.name for path in (tmp_path / "case").glob("run_*"))
    assert [name.split("_", 4)[4] for name in folders] == [
        f"hil_020000000001_{name}_probe_01" for name in ("agentoptions", "baseline", "tight")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("reconnect", ["requester", "board", "none"])
def test_who_reconnects_between_the_phases(bench: Bench, tmp_path: Path, reconnect: str) -> None:
    """Only the side that the parameter names drops its connection; the other one keeps it."""
    outcome, board = bench.measure(tmp_path / "case", reconnect=reconnect, reads=1, reads_after_reconnect=1)
    connected = [line for line in lines_of(tmp_path / "case") if line["event"] == "connected"]
    assert len(connected) == (2 if reconnect == "requester" else 1)
    assert board.connects == (2 if reconnect == "board" else 1)
    assert outcome.series.columns["outcome"] == (0, 0)


@pytest.mark.slow
def test_a_pause_is_kept_and_not_counted(bench: Bench, tmp_path: Path) -> None:
    """A request is due one pause after the answer before it, and is not sent earlier."""
    outcome, _ = bench.measure(tmp_path / "case", pause_ms=120, reads_after_reconnect=0)
    columns = outcome.series.columns
    for row in (1, 2):
        assert columns["planned_us"][row] - columns["done_us"][row - 1] == pytest.approx(120_000, abs=1)
        assert columns["sent_us"][row] >= columns["planned_us"][row]


@pytest.mark.slow
def test_in_a_rack_ports_are_the_studys_or_the_next(bench: Bench, tmp_path: Path) -> None:
    """In a network of its own the server has 8080 and 8443, beside another one the next; a name resolves."""
    with running_rack(tmp_path / "rack") as rack:
        broker = Broker.start(rack, rack.host_address, tmp_path / "broker", bench.certificates)
        companions = []
        try:
            for number, resolve in enumerate(["address", "name"]):
                place = bench.place(tmp_path / str(number), spawner=rack, resolve=resolve)
                place = replace(place, host_address=rack.host_address, broker=broker)
                companions.append(GatewayCompanion(place))
                told = companions[-1].start()
                assert (told["peer_port"], told["peer_tls_port"]) == (8080 + 10 * number, 8443 + 10 * number)
            assert told["dns_host"] == told["peer_host"] == rack.host_address
            argv = [sys.executable, "-c", ASK, str(told["peer_port"]), rack.host_address]
            client = rack.spawn(argv, netns="b1", log_path=tmp_path / "client.log")
            assert client.wait(DEADLINE_S) == 0, (tmp_path / "client.log").read_text()
        finally:
            for companion in companions:
                companion.stop()
            broker.stop()


ASK = """
import http.client, sys
client = http.client.HTTPConnection(sys.argv[2], int(sys.argv[1]), timeout=5)
client.request("GET", "/probe")
assert client.getresponse().status == 200
"""


def test_the_published_estimators() -> None:
    """p95 of five values is their maximum, p50 of four the upper middle one (ties to even), avg to 1 µs."""
    assert summarise([9, 8, 12, 10, 9]) == {"count": 5, "min": 8, "avg": 9.6, "max": 12, "p50": 9, "p95": 12}
    assert summarise([1, 2, 3, 4])["p50"] == 3
    assert summarise([1])["p95"] == 1
    assert summarise([])["avg"] is None


SUITES = """\
suites:
  quick:
    - {transport: password, http: https, resolve: name, reads: 2, reads_after_reconnect: 2}
    - {profile: all, order: interleaved, http: http, qos: 1, reads: 2, reads_after_reconnect: 1}

"""


@pytest.mark.slow
def test_a_virtual_board_is_the_gateway(tmp_path: Path) -> None:
    """The real firmware in a virtual rack: every request is answered, each part is where it belongs."""
    lab = make_lab(tmp_path, 1)
    for path in (ROOT / "thresholds").glob("*.yaml"):
        if not (tmp_path / "thresholds" / path.name).exists():
            shutil.copy(path, tmp_path / "thresholds")
    own = tmp_path / "thresholds" / "http_gateway.yaml"
    text = own.read_text()
    own.write_text(text[: text.index("suites:")] + SUITES + text[text.index("metrics:") :])
    done = lab.run("--suite", "quick and http_gateway")
    assert done.returncode == 0, done.stdout
    single, turns = of_type(lab.entries(), "record")
    assert set(single["columns"]["outcome"] + turns["columns"]["outcome"]) == {0}
    assert all(dns > 0 and tls > 0 for dns, tls in zip(*columns(single, "dns_us", "tls_us"), strict=True))
    assert [value > 0 for value in single["columns"]["board_connack_us"]] == [True, False, True, False]
    assert turns["columns"]["profile"] == [0, 1, 2] * 3
    assert turns["columns"]["tls_us"] == [0] * 9
    for record in (single, turns):
        rtt, board, http_us, server = columns(record, "rtt_us", "board_us", "http_us", "server_us")
        for values in zip(rtt, board, http_us, server, strict=True):
            assert list(values) == sorted(values, reverse=True), values
        assert record["environment"]["peer"]["late_answers_count"] == 0
        folder = lab.out / "latest" / record["environment"]["peer"]["folder"]
        assert len(list(folder.glob("run_*/rtt.csv"))) == len(set(record["columns"]["profile"]))


def columns(record: dict[str, Any], *names: str) -> list[list[int]]:
    return [record["columns"][name] for name in names]
