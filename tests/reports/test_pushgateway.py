# SPDX-License-Identifier: Apache-2.0
"""Pushing a run: to a real Pushgateway that a real Prometheus scrapes, and to all that is none."""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from ruamel.yaml import YAML

from hil.base.gateway_url import PASSWORD_VARIABLE, USER_VARIABLE
from hil.reports.pushgateway import push_run
from hil.store import RunDirectory, read_judged_run
from tests.make_records import run_info
from tests.reports.metrics_rig import (
    BOARDS,
    TIMEOUT_S,
    assert_says,
    broken,
    healthy,
    only_own_credentials,
    store,
)
from tests.reports.prometheus_rig import (
    Prometheus,
    Pushgateway,
    run_configured_prometheus,
    run_prometheus,
    run_pushgateway,
)

DOCS = Path(__file__).resolve().parents[2] / "docs" / "operate" / "metrics.md"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No credentials and no proxy but those of the test."""
    only_own_credentials(monkeypatch)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Pushgateway, Prometheus]]:
    folders = tmp_path_factory.mktemp("gateway"), tmp_path_factory.mktemp("prometheus")
    with run_pushgateway(folders[0]) as pushgateway, run_prometheus(folders[1], pushgateway) as scraper:
        yield pushgateway, scraper


def push(url: str, run: Path) -> str | None:
    """Push the run in a folder, and return the warning."""
    return push_run(url, read_judged_run(run), timeout_s=TIMEOUT_S)


@pytest.fixture
def gateway(servers: tuple[Pushgateway, Prometheus]) -> Pushgateway:
    return servers[0]


@pytest.fixture
def prometheus(servers: tuple[Pushgateway, Prometheus]) -> Prometheus:
    return servers[1]


def test_products_on_one_board_have_groups_of_their_own(tmp_path: Path, gateway: Pushgateway) -> None:
    """Neither product replaces the other's figures, nor those of no product."""
    for product in ("", "sensor-node", "gateway"):
        run = store(tmp_path, healthy(), rack="shared", run_id=f"of-{product}", product=product)
        assert push(gateway.url, run) is None
    held = gateway.samples(rack="shared", board=BOARDS[0])["hil_run_info"]
    assert {(labels.get("product", ""), labels["run_id"]) for labels, _ in held} == {
        ("", "of-"), ("sensor-node", "of-sensor-node"), ("gateway", "of-gateway"),
    }  # fmt: skip


def test_pull_requests_and_nightly_runs_stay_apart(tmp_path: Path, gateway: Pushgateway) -> None:
    """Each trigger has a job of its own, and a run replaces nothing but its own job's figures."""
    for number, trigger in enumerate(("nightly", "pr", "local", "pr")):
        run = store(tmp_path, healthy(), rack="jobs", run_id=f"run-{number}", trigger=trigger)
        assert push(gateway.url, run) is None
    found = gateway.samples(rack="jobs", board=BOARDS[0])["hil_run_info"]
    assert {labels["job"]: labels["run_id"] for labels, _ in found} == {
        "hil_nightly": "run-0",
        "hil_local": "run-2",
        "hil_pr": "run-3",
    }


@pytest.mark.slow
def test_a_board_that_gave_nothing_shows_no_older_figures(tmp_path: Path, gateway: Pushgateway) -> None:
    """After a rig fault the board is down, its fault is counted, and the last run's latencies are gone."""
    run = store(tmp_path, healthy(), rack="fault", run_id="run-good")
    assert push(gateway.url, run) is None
    assert "hil_publish_latency_seconds" in gateway.samples(rack="fault", board=BOARDS[1])
    run = store(tmp_path, broken(), rack="fault", run_id="run-bad")
    assert push(gateway.url, run) is None
    first = gateway.samples(rack="fault", board=BOARDS[0])
    assert len(first["hil_publish_latency_seconds"]) == 7 * 4
    second = gateway.samples(rack="fault", board=BOARDS[1])
    assert "hil_publish_latency_seconds" not in second
    assert [value for _, value in second["hil_board_up"]] == [0]
    assert [value for _, value in second["hil_run_exit_code"]] == [3]
    assert {labels["owner"]: value for labels, value in second["hil_board_faults"]}["rig"] == 1
    assert second["hil_run_info"][0][0]["run_id"] == "run-bad"


def test_a_gateway_that_died_is_a_warning(tmp_path: Path) -> None:
    """The sentence tells that nothing arrived, how it failed, and what to look at."""
    run = store(tmp_path / "out", healthy(), rack="virtual")
    with run_pushgateway(tmp_path) as server:
        assert push(server.url, run) is None
        server.kill()
        warning = push(server.url, run)
    assert_says(warning, "2 of 2 boards", f"{server.url}: Connection refused", "check scheme, host")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("{gateway}/metrics", ["404 Not Found", "without /metrics"]),
        ("{gateway}/prefix/", ["404 Not Found", "route prefix"]),
        ("{prometheus}", ["it answered 40", "check the address"]),  # 404 or 405, by its version
        ("{https}", ["wrong version number", "check scheme"]),
        (f"http://{'a' * 64}:9091", ["label too long", "check scheme, host"]),
        *(
            (url, [f"{url!r} is not one of http", "http://lab.example:9091"])
            for url in ("lab:9091", "ftp://lab:9091", "http://", "http://lab:port", "http://[::1", "")
        ),
        *((url, [repr(url), "not one of http"]) for url in ("http://lab:9091/?x=1", "http://lab :9091")),
    ],
)
def test_a_wrong_address_is_a_warning(
    tmp_path: Path, gateway: Pushgateway, prometheus: Prometheus, url: str, words: list[str]
) -> None:
    """Whatever the address, the sentence says what came back and how to write it."""
    run = store(tmp_path, healthy(), rack="virtual")
    https = gateway.url.replace("http", "https")
    address = url.format(gateway=gateway.url, prometheus=prometheus.url, https=https)
    assert_says(push(address, run), *words)


@pytest.mark.parametrize("scheme", ["http://", "https://", ""])
def test_credentials_in_the_address_are_refused_and_not_repeated(tmp_path: Path, scheme: str) -> None:
    """A password has no place in an address, and the sentence that says so does not spread it."""
    run = store(tmp_path, healthy(), rack="virtual")
    for user in ("lab:open-sesame@", "lab:open/se@same@", "lab@"):
        warning = push(f"{scheme}{user}lab.example:9091", run)
        assert_says(warning, f"'{scheme}***@lab.example:9091'", USER_VARIABLE)
        assert not re.search("open|same", str(warning))


def test_field_figures_that_contradict_others_are_a_warning(tmp_path: Path, gateway: Pushgateway) -> None:
    """The gateway's own words are passed on, and its failure time lets the alert fire."""
    gateway.put("/metrics/job/other", "# TYPE hil_odd_seconds counter\nhil_odd_seconds 1\n")
    odd = replace(healthy().series[0], metric="odd_p50_us")
    run = store(tmp_path, replace(healthy(), series=(odd,)), rack="odd", boards=[])
    assert_says(push(gateway.url, run), "1 of 1 boards", "400 Bad Request", "odd", "delete that group")
    assert gateway.samples(rack="odd")["push_failure_time_seconds"][0][1] > 0


def test_a_metric_that_is_left_out_is_named(tmp_path: Path, gateway: Pushgateway) -> None:
    """The rest arrives; the sentence says what did not, and what to rename."""
    same = replace(healthy().series[0], metric="publish_latency_p50_ms", unit="ms")
    run = store(tmp_path, replace(healthy(), series=(*healthy().series, same)), rack="clash")
    warning = push(gateway.url, run)
    assert_says(warning, "publish_latency_p50_ms, because another metric", "rename it")
    assert gateway.samples(rack="clash", stat="p50")["hil_publish_latency_seconds"]


def test_a_run_that_names_no_board_is_a_warning(tmp_path: Path) -> None:
    """Nothing is pushed for it; the sentence says where boards are looked for."""
    run = RunDirectory.create(tmp_path, run_info())
    run.write_verdict(replace(healthy(), series=()))
    assert_says(push("http://127.0.0.1:1", run.path), "names no board")


Answer = Callable[[socket.socket, int], None]


@contextmanager
def listener(answer: Answer) -> Iterator[tuple[str, list[int]]]:
    """Accept connections and let ``answer`` serve them, one after the other; yields address and numbers."""
    numbers: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection, suppress(OSError):
                    numbers.append(len(numbers))
                    answer(connection, numbers[-1])

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}", numbers
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def read_request(connection: socket.socket) -> None:
    """Read a request whole: closing earlier would reset the connection and lose the answer."""
    stream = connection.makefile("rb")
    length = 0
    while (line := stream.readline()).strip():
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    stream.read(length)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (["200 OK", "500 Oops\r\n\r\ndisk full"], ["1 of 2 boards", "500 Oops: disk full", "its log"]),
        (
            ["301 Moved\r\nLocation: http://lab@other:9091/metrics/job/hil_pr/board/x"],
            ["2 of 2 boards", "redirects to http://***@other:9091. Next: name that address"],
        ),
        (["403 Forbidden"], ["403 Forbidden", USER_VARIABLE]),
    ],
)
def test_what_a_server_answers_is_passed_on(tmp_path: Path, answers: list[str], words: list[str]) -> None:
    """The first failure ends the push; how many boards it left out is told."""

    def answer(connection: socket.socket, number: int) -> None:
        read_request(connection)
        end = "" if "\r\n\r\n" in answers[number] else "\r\n\r\n"
        connection.sendall(f"HTTP/1.0 {answers[number]}{end}".encode())

    run = store(tmp_path, healthy(), rack="virtual")
    with listener(answer) as (url, numbers):
        assert_says(push(url, run), *words)
        assert len(numbers) == len(answers)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"", "closed connection without response"),
        (b"220 mail.example ready\r\n", "220 mail.example ready"),
        (b"\x00\x1b[2Jnoise " * 500, "noise noise"),
    ],
)
def test_a_server_that_speaks_no_http_is_a_warning(tmp_path: Path, said: bytes, words: str) -> None:
    """Something else listens there."""

    def answer(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(said)

    run = store(tmp_path, healthy(), rack="virtual")
    with listener(answer) as (url, _):
        warning = push(url, run)
        assert_says(warning, words, "check scheme, host and port")
        assert str(warning).isprintable()
        assert len(str(warning)) < 500  # a screen shows it


def test_a_refusal_is_told_although_the_connection_broke(tmp_path: Path) -> None:
    """A server that does not read what it refuses resets the connection; a short request gets its answer."""

    def answer(connection: socket.socket, _number: int) -> None:
        if connection.recv(3) == b"PUT":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        read_request(connection)
        connection.sendall(b"HTTP/1.0 401 Unauthorized\r\n\r\n")

    run = store(tmp_path, healthy(), rack="virtual")
    with listener(answer) as (url, _):
        assert_says(push(url, run), "401 Unauthorized", f"set {USER_VARIABLE}")


def test_a_password_does_not_follow_a_redirect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is named in a redirect is told nothing, neither by the push nor by the request after it."""
    monkeypatch.setenv(USER_VARIABLE, "lab")
    monkeypatch.setenv(PASSWORD_VARIABLE, "sesame")
    run = store(tmp_path, healthy(), rack="virtual")
    with listener(lambda connection, _: read_request(connection)) as (elsewhere, visits):

        def answer(connection: socket.socket, number: int) -> None:
            read_request(connection)
            if number:
                connection.sendall(f"HTTP/1.0 302 Found\r\nLocation: {elsewhere}\r\n\r\n".encode())

        with listener(answer) as (url, numbers):
            assert_says(push(url, run), f"redirects to {elsewhere}")
            assert (numbers, visits) == ([0, 1], [])


@pytest.mark.parametrize("drips", [False, True], ids=["silent", "a byte now and then"])
def test_a_server_that_never_answers_costs_the_timeout_once(tmp_path: Path, drips: bool) -> None:
    """However many boards, one connection is made; one that keeps sending does not hold the run either."""
    over = threading.Event()

    def answer(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        if drips:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
        for _ in range(250):  # for ever, as far as the timeout goes
            if over.wait(0.02):
                return
            if drips:
                connection.sendall(b"x")

    boards = [{"id": f"b{number}", "kind": "virtual", "target": "virtual-esp32"} for number in range(32)]
    run = store(tmp_path, replace(healthy(), series=()), rack="virtual", boards=boards)
    with listener(answer) as (url, numbers):
        try:
            warning = push_run(url, read_judged_run(run), timeout_s=0.3)
        finally:
            over.set()
        assert_says(warning, "32 of 32 boards", "no answer within 0.3 s", "check that it is up")
        assert numbers == [0]


@pytest.fixture
def web_config(tmp_path: Path) -> str:
    """The documented --web.config.file, and beside it the files that it and prometheus.yaml name."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_pem.write_to_path(str(tmp_path / "pushgateway.key"))
    certificate.cert_chain_pems[0].write_to_path(str(tmp_path / "pushgateway.pem"))
    authority.cert_pem.write_to_path(str(tmp_path / "pushgateway-ca.pem"))
    (tmp_path / "pushgateway-password").write_text("sesame")
    return (DOCS.parent / "metrics" / "pushgateway-web.yaml").read_text()


@pytest.mark.slow
def test_passwords_and_certificates(tmp_path: Path, web_config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """User name and password come from the environment and show up in no sentence; nor is TLS optional."""
    run = store(tmp_path / "out", healthy(), rack="virtual")
    with run_pushgateway(tmp_path, web_config=web_config) as server:
        assert_says(push(server.url, run), "certificate is not trusted", "SSL_CERT_FILE")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "pushgateway-ca.pem"))
        assert_says(push(server.url, run), "401 Unauthorized", f"set {USER_VARIABLE} and {PASSWORD_VARIABLE}")
        monkeypatch.setenv(USER_VARIABLE, "lab")
        monkeypatch.setenv(PASSWORD_VARIABLE, "open barley")
        warning = push(server.url, run)
        assert_says(warning, "401 Unauthorized", f"correct {USER_VARIABLE} and {PASSWORD_VARIABLE}")
        assert "barley" not in str(warning)
        monkeypatch.setenv(PASSWORD_VARIABLE, "sesame")
        assert push(server.url, run) is None
        plain = push(server.url.replace("https", "http"), run)
        assert_says(plain, "2 of 2 boards")  # the answer or a reset, whichever comes first


@pytest.mark.slow
def test_the_documented_prometheus_reads_the_documented_gateway(
    tmp_path: Path, web_config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """prometheus.yaml as it stands, but for address and intervals, reads what a run pushed over TLS."""
    for name in ("alerts.yaml", "rules.yaml"):
        (tmp_path / name).write_text((DOCS.parent / "metrics" / name).read_text())
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "pushgateway-ca.pem"))
    monkeypatch.setenv(USER_VARIABLE, "lab")
    monkeypatch.setenv(PASSWORD_VARIABLE, "sesame")
    run = store(tmp_path / "out", healthy(), rack="tls")
    with run_pushgateway(tmp_path, web_config=web_config) as server:
        assert push(server.url, run) is None
        documented: dict[str, Any] = YAML(typ="safe").load(
            (DOCS.parent / "metrics" / "prometheus.yaml").read_text()
        )
        documented["global"] = {"scrape_interval": "200ms", "evaluation_interval": "200ms"}
        documented["scrape_configs"][0]["static_configs"][0]["targets"] = [
            server.url.removeprefix("https://")
        ]
        YAML().dump(documented, tmp_path / "prometheus.yaml")
        with run_configured_prometheus(tmp_path, tmp_path / "prometheus.yaml") as prometheus:
            found = prometheus.await_samples('hil_run_info{rack="tls"}')
    assert {labels["board"] for labels, _ in found} == set(BOARDS)


@pytest.mark.slow
def test_figures_outlive_a_restart_of_the_gateway(tmp_path: Path) -> None:
    """With --persistence.file everything is there again, its age with it; without, everything is gone."""
    run = store(tmp_path / "out", healthy(), rack="kept")
    kept = tmp_path / "pushgateway.state"
    for folder in ("first", "second", "third"):
        (tmp_path / folder).mkdir()
    with run_pushgateway(tmp_path / "first", kept=kept) as server:
        assert push(server.url, run) is None
        before = server.samples(rack="kept")
        server.stop()
    with run_pushgateway(tmp_path / "second", kept=kept) as server:
        assert server.samples(rack="kept") == before
    with run_pushgateway(tmp_path / "third") as server:
        assert not server.samples(rack="kept")


# Those that ask Prometheus come last: it has begun to scrape by then.


@pytest.mark.slow
def test_a_run_can_be_queried(tmp_path: Path, gateway: Pushgateway, prometheus: Prometheus) -> None:
    """p99, its limit and the commit of each board arrive, in seconds, under the pushed job."""
    run = store(tmp_path, healthy(), rack="query", run_id="run-query", commit="c0ffee")
    assert push(gateway.url, run) is None
    prometheus.await_run("run-query", len(BOARDS))
    where = 'job="hil_local", rack="query", board="virtual-2", case="qos=2"'
    expected = {
        item.metric: item
        for item in healthy().series
        if (item.board, item.case_label) == (BOARDS[1], "qos=2")
    }
    ((_, p99),) = prometheus.query(f'hil_publish_latency_seconds{{{where}, stat="p99"}}')
    assert p99 * 1e6 == pytest.approx(expected["publish_latency_p99_us"].value)
    ((_, limit),) = prometheus.query(f'hil_publish_latency_limit_seconds{{{where}, stat="p95"}}')
    assert limit == 0.03
    joined = f'hil_publish_latency_seconds{{{where}, stat="p99"}}'
    joined += " * on (job, rack, board, product) group_left (commit) hil_run_info"
    (((labels, value)),) = prometheus.query(joined)
    assert (labels["commit"], labels["kind"], value) == ("c0ffee", "virtual", p99)
    assert "instance" not in labels


@pytest.mark.slow
def test_the_documented_queries_answer(tmp_path: Path, gateway: Pushgateway, prometheus: Prometheus) -> None:
    """Each query in docs/operate/metrics.md finds something."""
    run = store(tmp_path, healthy(), rack="docs", run_id="run-docs")
    assert push(gateway.url, run) is None
    prometheus.await_run("run-docs", len(BOARDS))
    queries = re.findall(r"```promql\n(.+?)\n```", DOCS.read_text(), re.DOTALL)
    assert len(queries) == 4
    for query in queries:
        assert prometheus.query(query), query


@pytest.mark.slow
def test_another_commit_renews_the_info_metric_alone(
    tmp_path: Path, gateway: Pushgateway, prometheus: Prometheus
) -> None:
    """A second run adds one series a board, hil_run_info; at each moment there are as many as before."""
    count = 'count by (__name__) ({job="hil_local", rack="churn"})'
    known = []
    counts = []
    for commit in ("first", "second"):
        run = store(tmp_path, healthy(), rack="churn", run_id=f"run-{commit}", commit=commit)
        assert push(gateway.url, run) is None
        prometheus.await_run(f"run-{commit}", len(BOARDS))
        counts.append({labels["__name__"]: value for labels, value in prometheus.query(count)})
        known.append(Counter(one["__name__"] for one in prometheus.series('{job="hil_local", rack="churn"}')))
    assert counts[0] == counts[1]
    assert known[0]["hil_publish_latency_seconds"] == len(BOARDS) * 7 * 4
    assert known[1] - known[0] == {"hil_run_info": len(BOARDS)}
