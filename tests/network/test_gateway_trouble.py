# SPDX-License-Identifier: Apache-2.0
"""Trouble at http_gateway: each ends in time, as a row or as a sentence with an owner."""

from __future__ import annotations

import itertools
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from hil.base.errors import ConfigError, FirmwareError, RigError
from hil.network.broker import Broker
from hil.network.name_server import PEER_NAME, NameServer
from hil.network.peers.gateway.companion import GatewayCompanion
from hil.network.peers.gateway.connection import BrokerRefusedError
from hil.network.peers.gateway.joining import join
from hil.network.peers.gateway.lines import LineWriter
from hil.network.peers.gateway.plan import PROFILES, RequesterPlan
from hil.network.peers.gateway.plan import RequestOutcome as Ending
from hil.network.peers.gateway.reading import Requester, RequesterError, send_together
from hil.network.peers.gateway.requester import run
from hil.network.process import LocalSpawner, Process
from tests.boards.rack_tools import CHECKOUT
from tests.lab import wait_for
from tests.network.gateway_board import GatewayBoard
from tests.network.gateway_rig import (
    DEADLINE_S,
    TOPICS,
    Bench,
    lines_of,
    plan_of,
    requester_argv,
    series,
    wait_for_lines,
)
from tests.network.places import BOARD, LOOPBACK
from tests.reports.rtt_files import read_rtt_csv
from tools.chaos.fault import answering

pytestmark = pytest.mark.slow

ECHO_CHECK = "hil.network.peers.gateway.echo_check"


def test_a_late_answer_is_nobody_elses(bench: Bench, tmp_path: Path) -> None:
    """What comes after the timeout is noted; its row stays a timeout, the next one has its own answer."""
    outcome, _ = bench.measure(
        tmp_path / "case", "late", timeout_ms=150, pause_ms=350, reads_after_reconnect=1
    )
    columns = outcome.series.columns
    assert columns["outcome"] == (0, 1, 0, 0)
    assert columns["rtt_us"][1] >= 150_000 > columns["rtt_us"][2]
    assert columns["http_us"][1] > 0  # the board did ask the server
    assert outcome.environment["late_answers_count"] == 1
    (folder,) = (tmp_path / "case").glob("run_*")
    assert [row.status for row in read_rtt_csv(folder / "rtt.csv")] == ["ok", "timeout", "ok", "ok"]
    metadata = json.loads((folder / "metadata.json").read_text())
    assert (metadata["benchmark"]["readsOk"], metadata["benchmark"]["readsTimeout"]) == (3, 1)


@pytest.mark.parametrize(
    ("trouble", "changes", "outcome", "counted"),
    [
        ("silent", {"timeout_ms": 150}, Ending.TIMEOUT, {}),
        ("twice", {"pause_ms": 50}, Ending.OK, {"duplicate_answers_count": 1}),
        ("not-http", {}, Ending.NOT_HTTP, {"server_requests_count": 5}),
    ],
)
def test_a_request_that_went_wrong_is_a_row(
    bench: Bench,
    tmp_path: Path,
    trouble: str,
    changes: dict[str, int],
    outcome: Ending,
    counted: dict[str, int],
) -> None:
    """Without an answer it ends with the timeout; a second copy is counted apart and answers nothing. A read
    that failed is the board's, for the server was asked from here and is sound. The case goes on."""
    found, _ = bench.measure(tmp_path / "case", trouble, **changes)
    assert found.series.columns["outcome"] == (0, outcome, 0, 0, 0)
    assert counted.items() <= found.environment.items()
    if outcome is Ending.NOT_HTTP:
        assert (tmp_path / "case" / "echo-check.log").read_text() == ""


class Redirected(LocalSpawner):
    """A host where whoever asks the echo server is answered by another program, as a NAT rule has it."""

    def __init__(self, ports: tuple[int, int]) -> None:
        self._ports = [str(port) for port in ports]

    def spawn(self, argv: Sequence[str], *, log_path: Path) -> Process:
        if ECHO_CHECK in argv:
            argv = [*argv[: argv.index(ECHO_CHECK) + 2], *self._ports]
        return super().spawn(argv, log_path=log_path)


def _garbage(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.sendall(bytes(range(256)))


@pytest.mark.parametrize(
    ("answer", "said"), [(_garbage, "BadStatusLine"), (lambda _: None, "Remote|Connection")]
)
def test_a_server_that_fails_its_own_host_too_is_the_rigs(
    bench: Bench, tmp_path: Path, answer: Callable[[socket.socket], object], said: str
) -> None:
    """Rule: where the host gets no answer from its own server either, no board is blamed for its reads."""
    with answering(answer) as port:
        spawner = Redirected((port, port))
        with pytest.raises(RigError, match=rf"answer .*: port {port}: ({said})"):
            bench.measure(tmp_path / "case", "not-http", spawner)


@pytest.mark.parametrize(("trouble", "quoted"), [("wrong-id", "'9-9-9'"), ("garbage", "'}{ no JSON'")])
def test_what_answers_nothing_is_the_firmwares(
    bench: Bench, tmp_path: Path, trouble: str, quoted: str
) -> None:
    """An answer to nothing, or no answer at all, fails the case in time and is quoted."""
    with pytest.raises(FirmwareError, match=quoted):
        bench.measure(tmp_path / "case", trouble, timeout_ms=200)


def test_samples_that_contradict_the_answers_are_the_firmwares(bench: Bench, tmp_path: Path) -> None:
    """A board whose samples and answers differ, or that lacks a sample, is not believed. A requester that had
    to come back in the middle does not change what the first connection of its phase took."""
    _, board = bench.measure(tmp_path / "case", reads=1, reads_after_reconnect=0)
    lines, right = lines_of(tmp_path / "case"), board.rows[0]
    (first,) = (line for line in lines if line["event"] == "connected")
    later = {**first, "connect_us": first["connect_us"] + 9}
    (request,) = join(series(board), [*lines, later], [])
    assert request.row["connect_us"] == first["connect_us"]
    for rows, sentence in (
        ([{**right, "http_us": 1}], "contradict .*: http_us"),
        ([], "no sample"),
        ([right, {**right, "read": 2}], "phase 1, read 2"),
    ):
        board.rows = rows
        with pytest.raises(FirmwareError, match=sentence):
            join(series(board), lines, [])


def test_a_requester_that_ended_early_gives_no_result(bench: Bench, tmp_path: Path) -> None:
    """Fewer requests than planned are the rig's fault, not a shorter series."""
    with bench.companion(tmp_path / "case", reads=1, reads_after_reconnect=0) as (companion, board):
        with board:
            assert board.ended.wait(DEADLINE_S)
        companion._parameters = {**companion._parameters, "reads": 2}
        with pytest.raises(RigError, match="1 of 2 requests"):
            companion.finish(series(board))


def test_a_server_that_dies_is_named_while_the_case_runs(bench: Bench, tmp_path: Path) -> None:
    """Name server or echo server: a case that goes on is asked as well as one that has ended."""
    with bench.companion(tmp_path / "case", reads=1, reads_after_reconnect=0) as (companion, board):
        companion.check()
        process = LocalSpawner().spawn(["sleep", "60"], log_path=tmp_path / "log")
        companion._name_server = NameServer(process, LOOPBACK, PEER_NAME, tmp_path / "log")
        with board:
            assert board.ended.wait(DEADLINE_S)
        process.kill()
        process.wait(DEADLINE_S)
        for look in (companion.check, lambda: companion.finish(series(board))):
            with pytest.raises(RigError, match=r"name server .*killed by signal 9"):
                look()


def test_a_slow_server_is_not_the_firmwares_fault(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the host's own server takes long, the case says so instead of giving round trips."""
    monkeypatch.setattr("hil.network.peers.gateway.companion.SERVER_P95_MAX_US", 0)
    with pytest.raises(RigError, match=r"echo server .* too slow .* b1"):
        bench.measure(tmp_path / "case")


@dataclass
class Breaking:
    """A requester whose first request breaks it where ``breaks``."""

    profile: str
    breaks: bool
    due_ns: int = 0

    def read(self, phase: int, read: int) -> None:
        if self.breaks:
            raise ZeroDivisionError(f"{phase}/{read}")

    def rest(self, phase: int, until_ns: int) -> None:
        """It rests well."""


def test_a_thread_that_breaks_ends_all_of_them() -> None:
    """Whatever breaks one of several requesters is raised, not the wait of the others, and none goes on."""
    plan = plan_of(profiles=PROFILES, phases=(2,))
    requesters: Any = [Breaking(name, breaks=name == "tight") for name in PROFILES]
    with pytest.raises(ZeroDivisionError, match="1/1"):
        send_together(requesters, plan, 1, 2)


def test_a_broker_that_refuses_is_not_asked_again() -> None:
    """A refusal is no lost link: the first attempt is the last one."""
    nowhere: Any = None
    requester = Requester(plan_of(), "tight", [], nowhere, itertools.count())
    attempts: Any = iter([BrokerRefusedError("not you"), AssertionError("asked again")])
    requester.connection.open = lambda: raise_next(attempts)  # type: ignore[method-assign]
    with pytest.raises(RequesterError, match="not you"):
        requester.open(1)


def raise_next(errors: Iterator[Exception]) -> NoReturn:
    raise next(errors)


def test_a_board_that_is_never_ready_is_given_up(bench: Bench, tmp_path: Path) -> None:
    """The requester ends by itself, and its last line says what it waited for and whose fault it is."""
    plan = plan_of(bench.broker.ports.tcp, ready_timeout_ms=300)
    plan.write(tmp_path / "plan.json")
    assert RequesterPlan.read(tmp_path / "plan.json") == plan
    server = (LOOPBACK, 1)  # nobody asks it
    board = GatewayBoard((LOOPBACK, bench.broker.ports.tcp), TOPICS, server, trouble="never-ready")
    with board:
        done = subprocess.run(requester_argv(tmp_path), cwd=CHECKOUT, timeout=DEADLINE_S, check=False)
    assert done.returncode == 3
    last = lines_of(tmp_path)[-1]
    assert (last["event"], last["owner"]) == ("error", "firmware")
    assert "hil/020000000001/gateway/ready" in last["sentence"]


@pytest.mark.parametrize("said", [r"stood still for 1\.\d s", "^The {} .*killed by signal 9"])
@pytest.mark.parametrize(("victim", "name"), [("requester", "requester"), ("server", "echo server")])
def test_a_program_that_is_held_up_or_killed_is_the_rigs(
    bench: Bench, tmp_path: Path, victim: str, name: str, said: str
) -> None:
    """Stopped for a second and let go on: requests are late, and no gateway is called slow for it. One that
    dies in the middle of a case is named, with the signal."""
    folder = tmp_path / "case"
    with bench.companion(folder, pause_ms=300) as (companion, board):
        with board:
            wait_for_lines(folder, "request")
            program = companion._requester if victim == "requester" else companion._server
            assert program is not None
            companion.check()
            if "killed" in said:
                program._process.kill()
                program._process.wait(DEADLINE_S)
            else:
                program._process.send_signal(signal.SIGSTOP)
                time.sleep(1.3)
                program._process.send_signal(signal.SIGCONT)
                wait_for(lambda: bool(program.lines.of("paused")), lambda: "it did not notice")
        with pytest.raises(RigError, match=said.format(name)):
            companion.check()


def test_a_broker_that_restarts_costs_a_request(bench: Bench, tmp_path: Path) -> None:
    """A lost connection is a row with outcome 8; the requester comes back and goes on."""
    own = replace(bench, broker=start_broker(bench, tmp_path))
    try:
        folder = tmp_path / "case"
        with own.companion(folder, reads=12, reads_after_reconnect=0, timeout_ms=1000) as (companion, board):
            board.trouble = "silent"
            with board:
                wait_for_lines(folder, "request")  # the second read has no answer: it is under way
                own.broker.interrupt()
                wait_for_lines(folder, "lost")
                own.broker.resume()
                assert board.ended.wait(DEADLINE_S)
            outcome = companion.finish(series(board))
    finally:
        own.broker.stop()
    outcomes = outcome.series.columns["outcome"]
    assert (outcomes.count(8), len(outcomes)) == (1, 12)
    assert outcomes[-1] == 0
    assert outcome.environment["requester_reconnects_count"] == 1


def test_a_dead_broker_is_the_rigs(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a broker the requester gives up in time and says what it could not reach."""
    own = replace(bench, broker=start_broker(bench, tmp_path))
    own.broker.stop()
    monkeypatch.setattr("hil.network.peers.gateway.reading.REOPEN_TIMEOUT_S", 0.3)
    port = own.broker.ports.tcp
    with (
        pytest.raises(RequesterError, match=rf"127.0.0.1:{port}: .*refused") as caught,
        LineWriter(tmp_path / "lines.jsonl") as lines,
    ):
        run(plan_of(port), [], lines)
    assert caught.value.owner == "rig"


def start_broker(bench: Bench, folder: Path) -> Broker:
    return Broker.start(LocalSpawner(), LOOPBACK, folder / "broker", bench.certificates)


def test_a_refused_login_is_the_rigs(bench: Bench, tmp_path: Path) -> None:
    """The password listener lets the run's login in; the broker's refusal of another one is quoted."""
    right = GatewayCompanion(bench.place(tmp_path / "right", transport="password"))
    try:
        right.start()
        wait_for_lines(tmp_path / "right", "connected")
        assert bench.broker.login.password not in (tmp_path / "right" / "requester-plan.json").read_text()
        assert not list(bench.certificates.ca_file.parent.glob("requester-*"))
    finally:
        right.stop()
    plan = RequesterPlan.read(tmp_path / "right" / "requester-plan.json")
    credentials = tmp_path / "credentials"
    credentials.write_text("hil-board\nwrong\n")
    replace(plan, credentials_file=str(credentials)).write(tmp_path / "plan.json")
    argv = requester_argv(tmp_path)
    assert subprocess.run(argv, cwd=CHECKOUT, timeout=DEADLINE_S, check=False).returncode == 3
    last = lines_of(tmp_path)[-1]
    assert (last["owner"], "Not authorized" in last["sentence"]) == ("rig", True)
    assert not credentials.exists()


def test_a_board_without_mac_is_the_configurations(bench: Bench, tmp_path: Path) -> None:
    """The topics need the board's address; the error names the rack file's line."""
    place = replace(bench.place(tmp_path / "case"), board=replace(BOARD, mac=""))
    with pytest.raises(ConfigError, match=r"rack\.yaml:7: .*'mac'"):
        GatewayCompanion(place).start()


def test_a_taken_port_is_named(bench: Bench, tmp_path: Path) -> None:
    """Where no pair of ports is free the server ends with the reason."""
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        argv = [sys.executable, "-m", "hil.network.peers.gateway.echo_server", f"--address={LOOPBACK}"]
        argv += [f"--port={port}", f"--certificate={bench.certificates.server_cert_file}"]
        argv += [f"--key={bench.certificates.server_key_file}", f"--lines={tmp_path / 'lines'}"]
        done = subprocess.run(
            argv, cwd=CHECKOUT, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
    assert done.returncode == 3
    assert f"in use: port {port}" in done.stderr
