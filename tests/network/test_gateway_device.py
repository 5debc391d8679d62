# SPDX-License-Identifier: Apache-2.0
"""The http_gateway bench: the real firmware between a real broker and real servers, and lying ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, HilError, RigError
from hil.model import Case, Series
from hil.network.broker import Broker
from hil.network.certificates import make_certificates
from hil.network.name_server import PEER_NAME
from hil.network.process import LocalSpawner
from tests.host_builds import build_sanitized
from tests.network.gateway_device_rig import HOST, PARAMETERS, RUN_S, TOPICS, Asker, Lab, NameServer, Server

pytestmark = pytest.mark.slow

OK, TIMEOUT, UNREACHABLE, TLS_FAILED, NOT_HTTP, TRUNCATED, STATUS, ENDLESS = range(8)
PARTS = ("dns_us", "tcp_us", "tls_us", "http_us")
ABORT_S = 10.0


@pytest.fixture(scope="module")
def build() -> Path:
    return build_sanitized("hil-firmware.elf")


@pytest.fixture(scope="module")
def lab(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    certificates = make_certificates(folder / "certificates", HOST, PEER_NAME)
    broker = Broker.start(LocalSpawner(), HOST, folder / "broker", certificates)
    yield Lab(build / "hil-firmware.elf", broker, certificates)
    broker.stop()


@pytest.fixture(scope="module", autouse=True)
def silence(lab: Lab) -> Iterator[Future[Series]]:
    """A board whose requester falls silent after its first request, while the other tests run.

    It is another board: it has a broker and so topics of its own.
    """
    broker = Broker.start(
        LocalSpawner(), HOST, lab.certificates.ca_file.parent.parent / "silent", lab.certificates
    )
    with ThreadPoolExecutor(1) as pool, Server("ok") as server:
        quiet = Lab(lab.elf, broker, lab.certificates)

        def fall_silent() -> Series:
            with quiet.asked(server, timeout_ms=100) as (asker, future):
                asker.ask(1, 1)
                return future.result()

        yield pool.submit(fall_silent)
    broker.stop()


@pytest.fixture(scope="module", autouse=True)
def unnamed(lab: Lab) -> Iterator[Future[tuple[list[int], Series]]]:
    """Three requests of which the name server answers the first one's question only. It takes lwIP's 7 s,
    in which the other tests run; another board, as above."""
    folder = lab.certificates.ca_file.parent.parent / "unnamed"
    broker = Broker.start(LocalSpawner(), HOST, folder, lab.certificates)
    board = Lab(lab.elf, broker, lab.certificates)
    changes = {"resolve": "name", "timeout_ms": 200, "reads": 3, "reads_after_reconnect": 0}

    def ask() -> tuple[list[int], Series]:
        with NameServer(2) as names, board.asked(server, names=names.ADDRESS, **changes) as (asker, future):
            asker.ask(1, 1)
            answers = [asker.answer()]
            asker.ask(1, 2)
            asker.ask(1, 3)
            answers += [asker.answer(), asker.answer()]
            asker.control(end=1)
            return [answer["outcome"] for answer in answers], future.result()

    with ThreadPoolExecutor(1) as pool, Server("ok") as server:
        yield pool.submit(ask)
    broker.stop()


def test_a_run_has_two_phases_and_a_reconnection(lab: Lab, tmp_path: Path) -> None:
    """Each request is fetched on a connection of its own, and the second phase begins with a new MQTT one."""
    series, outcome, notes = lab.measure(tmp_path / "case")
    assert outcome.series.columns["board_connack_us"][0] == series.device["phase1_connack_us"]
    columns = series.columns
    assert columns["phase"] == (1, 1, 2, 2)
    assert columns["read"] == (1, 2, 1, 2)
    assert set(columns["outcome"]) == {OK}
    assert set(columns["reused"]) == set(columns["resumed"]) == set(columns["tls_us"]) == {0}
    assert all(value > 0 for name in ("tcp_us", "http_us") for value in columns[name])
    for row in range(4):
        took_us = columns["published_us"][row] - columns["received_us"][row]
        assert took_us >= sum(columns[name][row] for name in PARTS)
    assert series.device["connects"] == 2
    assert all(series.device[f"phase{phase}_{name}_us"] for phase in (1, 2) for name in ("connack", "suback"))
    assert {(note.kind, note.fields["phase"]) for note in notes} == {("ready", "1"), ("ready", "2")}
    counts = ("bad_requests_count", "probes_count", "no_memory_count")
    assert [series.device[name] for name in counts] == [0, 0, 0]


def test_the_board_stays_where_only_the_requester_reconnects(lab: Lab, tmp_path: Path) -> None:
    """reconnect=requester leaves the board's MQTT and HTTP connections as they are."""
    series, _, _ = lab.measure(tmp_path / "case", reconnect="requester", profile="agentoptions", qos=1)
    assert series.device["connects"] == 1
    assert series.columns["phase"] == (1, 1, 2, 2)
    assert series.columns["reused"] == (0, 1, 1, 1)
    assert series.columns["tcp_us"][1:] == series.columns["dns_us"][1:] == (0, 0, 0)


def test_a_reconnection_of_the_board_makes_both_cold(lab: Lab, tmp_path: Path) -> None:
    """reconnect=board drops the pool too; over mTLS and HTTPS the TLS session outlives it."""
    changes = {"reconnect": "board", "profile": "agentoptions", "transport": "mtls", "http": "https"}
    series, outcome, _ = lab.measure(tmp_path / "case", **changes)
    assert series.device["connects"] == 2
    assert series.columns["reused"] == (0, 1, 0, 1)
    assert series.columns["resumed"] == (0, 0, 1, 0)
    assert [value > 0 for value in series.columns["tls_us"]] == [True, False, True, False]
    assert outcome.environment["tls_resumed_count"] == series.device["resumed_count"] == 1


@pytest.mark.needs_root  # for port 53
@pytest.mark.parametrize("resume", [0, 1])
def test_resumption_is_what_the_server_says(lab: Lab, tmp_path: Path, resume: int) -> None:
    """With resume=1 each handshake but the first is an abbreviated one, for the server as for the board."""
    series, outcome, _ = lab.measure(
        tmp_path / "case", http="https", resume=resume, resolve="name", transport="password"
    )
    assert series.columns["resumed"] == ((0, 1, 1, 1) if resume else (0, 0, 0, 0))
    assert outcome.environment["tls_resumed_count"] == 3 * resume
    assert all(value > 0 for name in PARTS for value in series.columns[name])


@pytest.mark.parametrize("order", ["together", "interleaved"])
def test_profiles_work_side_by_side(lab: Lab, tmp_path: Path, order: str) -> None:
    """All profiles answer all their requests, each by its own rules, probes beside them."""
    series, outcome, _ = lab.measure(tmp_path / "case", profile="all", order=order, probe_interval_ms=50)
    rows = zip(*(series.columns[name] for name in ("profile", "phase", "read", "outcome")), strict=True)
    assert sorted(rows) == [(profile, 1 + n // 2, 1 + n % 2, OK) for profile in range(3) for n in range(4)]
    assert set(outcome.series.columns["outcome"]) == {OK}
    assert int(str(series.device["probes_count"])) >= 3
    assert series.device["probes_failed_count"] == 0


def test_what_a_server_does_is_a_row(lab: Lab) -> None:
    """A hanging, a lying and a wrong server: an answer each, with its outcome, and a row each."""
    reads = ("hang", "garbage", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "ok")
    with Server(*reads) as server, lab.asked(server, timeout_ms=300) as (asker, future):
        outcomes = []
        for read in range(1, 5):
            asker.ask(1, read)
            outcomes.append(asker.answer()["outcome"])
        asker.control(end=1)
        series = future.result()
    assert outcomes == list(series.columns["outcome"]) == [TIMEOUT, NOT_HTTP, TRUNCATED, OK]
    assert series.columns["http_us"][0] >= 250_000


def test_garbage_is_counted_and_not_answered(lab: Lab) -> None:
    """What is no request leaves no row; rows whose request never came are empty."""
    garbage = (b"", b"{", b"\xff\xfe", b'{"id":"1-1-1"}', b'{"id":"x","trigger_ms":1}', b"[" * 2000)
    with Server("ok") as server, lab.asked(server) as (asker, future):
        for payload in garbage:
            asker.send(TOPICS.request("baseline"), payload)
        asker.ask(1, 1, profile="tight")  # not this run's
        asker.send(TOPICS.control, '{"phase":3}')
        asker.ask(1, 1)
        answer = asker.answer()
        asker.control(end=1)
        asker.control(end=1)
        series = future.result()
    assert (answer["id"], answer["status"], answer["body_bytes"]) == ("1-1-1", 200, 2)
    assert series.columns["phase"] == (1, 0, 0, 0)
    assert series.device["bad_requests_count"] == len(garbage) + 2


def test_abort_ends_a_run_soon_and_the_next_one_works(lab: Lab) -> None:
    """A GET that would wait for a minute ends when the host aborts; nothing of the run is left."""
    with Server("hang") as server, lab.session(peer_host=HOST, peer_port=server.port) as session:
        parameters = {**PARAMETERS, "timeout_ms": 60000}
        asker = Asker(lab.broker)
        session.command("run", "http_gateway", *(f"{key}={value}" for key, value in parameters.items()))
        asker.await_ready(1)
        asker.ask(1, 1)
        server.await_hanging()
        asker.stop()
        session.abort()
        deadline = time.monotonic() + ABORT_S
        while session.info()["state"] == "running":
            assert time.monotonic() < deadline
        session.provision({"peer_port": 1})
        with pytest.raises(RigError, match="no answer from"):
            session.run_case(Case("http_gateway", parameters), timeout_s=RUN_S)


def test_a_silent_requester_ends_the_run(silence: Future[Series]) -> None:
    """A requester that dies is the rig's fault, and it is said how far it came."""
    with pytest.raises(RigError, match="after 1 of 4 requests"):
        silence.result()


@pytest.mark.needs_root  # for port 53
def test_a_silent_name_server_delays_no_more_than_one_request(
    unnamed: Future[tuple[list[int], Series]],
) -> None:
    """A look-up ends by lwIP's own deadline; what waited behind it is not looked up: its time is over."""
    answered, series = unnamed.result()
    assert answered == list(series.columns["outcome"]) == [OK, UNREACHABLE, TIMEOUT]
    assert series.columns["dns_us"][1] > 5_000_000
    assert series.columns["dns_us"][2] == 0


WITH_NAME = {"peer_name": PEER_NAME, "peer_port": 1}
TWO = {"peer_host": HOST, "peer_port": 1}


@pytest.mark.parametrize(
    ("told", "changes", "owner", "words"),
    [
        (TWO, {}, RigError, f"http://{HOST}:1/probe: Connection refused"),
        ({**TWO, "peer_tls_port": "server"}, {"http": "https"}, RigError, "TLS failed"),
        (
            {**TWO, "peer_port": "server", "mqtt_password": "wrong"},
            {"transport": "password"},
            RigError,
            "not authorized|bad user name",
        ),
        ({**TWO, "peer_tls_port": "tls", "ca_pem": "other"}, {"http": "https"}, RigError, "another CA"),
        ({}, {}, ConfigError, "HTTP server's .* not provisioned"),
        (WITH_NAME, {"resolve": "name"}, ConfigError, "name server .*not provisioned"),
        ({**WITH_NAME, "dns_host": "name"}, {"resolve": "name"}, ConfigError, "asked for names"),
        (TWO, {"sockets_max": 0}, ConfigError, "sockets_max=0"),
        (TWO, {"profile": "all", "reads": 500}, ConfigError, "1506 requests"),
    ],
)
def test_what_a_case_lacks_is_the_rigs_or_configuration(
    lab: Lab,
    tmp_path: Path,
    told: dict[str, str | int],
    changes: dict[str, str | int],
    owner: type[HilError],
    words: str,
) -> None:
    """A server that is not there, is something else or has another CA's certificate, and a broker that
    refuses: a rig fault, in words. A case that cannot be measured says why, before anything is tried."""
    with Server() as server:
        other = make_certificates(tmp_path, HOST).ca_pem if "ca_pem" in told else ""
        meant: dict[str, str | int] = {"server": server.port, "tls": lab.broker.ports.tls, "other": other}
        told = {key: meant.get(str(value), value) for key, value in told.items()}
        with lab.session(**told) as session, pytest.raises(owner, match=words):
            session.run_case(Case("http_gateway", {**PARAMETERS, **changes}), timeout_s=RUN_S)
