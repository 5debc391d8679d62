# SPDX-License-Identifier: Apache-2.0
"""The companion of the bench http_gateway: echo server, name server and requester, and what they saw."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, FirmwareError, RigError
from hil.base.process import how_ended
from hil.model import Series
from hil.network.name_server import NameServer
from hil.network.peers.companion import Companion, Observed, Place
from hil.network.peers.gateway.echo_check import CHECK_PATH
from hil.network.peers.gateway.joining import columns_of, join, requester_facts, server_facts, write_artefacts
from hil.network.peers.gateway.plan import PROFILES, RequesterPlan
from hil.network.peers.gateway.program import AGAIN, Program
from hil.network.process import run_to_end
from hil.network.standstill import Standstill

HTTP_PORT, HTTPS_PORT = 8080, 8443  # the published benchmark's, in a network of the rack's own
PORT_ATTEMPTS = 16
START_TIMEOUT_S = 15.0
LISTENING_TIMEOUT_S = 25.0  # longer than the requester tries to reach the broker
END_TIMEOUT_S = 20.0
ECHO_CHECK_TIMEOUT_S = 10.0
CLOCK = "host CLOCK_MONOTONIC"
# Its answers take well below 1 ms; this is as much as the air adds to a whole request on the lab air.
SERVER_P95_MAX_US = 20_000


class GatewayCompanion(Companion):
    """One case: the server that the board asks, and the requester that asks the board."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._folder = place.folder.resolve()
        self._parameters = place.case.parameters
        self._server: Program | None = None
        self._requester: Program | None = None
        self._name_server: NameServer | None = None
        self._standstill: Standstill | None = None  # of whichever name server answers
        self._credentials = ""

    def start(self) -> Mapping[str, str | int]:
        """Start server and requester; the requester has subscribed then, and waits for the board.

        Raises:
            ConfigError: the board has no mac in the rack file.
            RigError: a program is missing or did not start, or the broker cannot be reached.
        """
        place = self._place
        plan = self._make_plan()
        self._server = self._start_server()
        self._requester = self._start_requester(plan)  # beside it: both take a while to load
        ports = self._server.await_line("ready", timeout_s=START_TIMEOUT_S)
        told: dict[str, str | int] = {
            "peer_host": place.host_address,
            "peer_name": place.peer_name,
            "peer_port": int(ports["port"]),
            "peer_tls_port": int(ports["tls_port"]),
        }
        if self._parameters["resolve"] == "name":
            answering = self._start_name_server()
            self._standstill = Standstill("The name server", lambda: answering.pid)
            told["dns_host"] = answering.address
        self._requester.await_line("listening", "error", timeout_s=LISTENING_TIMEOUT_S)
        self._raise_requester_error(self._requester)
        return told

    def _start_name_server(self) -> NameServer:
        """Start one, unless the run has one: both would want the same port."""
        place = self._place
        if place.name_server:
            return place.name_server
        log = self._folder / "name-server.log"
        self._name_server = NameServer.start(
            place.spawner, place.interface, place.host_address, place.peer_name, log
        )
        return self._name_server

    def check(self) -> None:
        """Raise what the host's side knows: who died or stood still, what the requester gave up for."""
        self._check_servers()
        for program in (self._server, self._requester):
            if program:
                program.check_pauses()
        if self._requester:
            self._raise_requester_error(self._requester)
            self._requester.check_until("end")

    def finish(self, series: Series) -> Observed:
        """Join the requests with the board's samples and the server's; write the artefacts.

        Raises:
            RigError: a program died, or the requester lost the broker.
            FirmwareError: the board's answers, its samples and the requests contradict each other.
        """
        server, requester = self._server, self._requester
        assert server is not None
        assert requester is not None
        requester.await_line("end", "error", timeout_s=END_TIMEOUT_S)
        for program in (server, requester):
            program.check_pauses()
        self._raise_requester_error(requester)
        self._check_servers()
        self._check_echo(requester, server)
        requester.stop()
        server.stop()
        lines = requester.lines.update()
        served = [line for line in server.lines.update() if line.get("path") != CHECK_PATH]
        self._check_answers(lines)
        self._check_count(lines)
        self._check_speed(served)
        requests = join(series, lines, [line for line in served if line["event"] == "request"])
        started = datetime.fromtimestamp(requester.lines.of("start")[0]["wall_ns"] / 1e9, tz=UTC)
        plan = self._make_plan()
        write_artefacts(self._folder, plan, requests, started)
        joined = replace(series, columns=columns_of(requests), warmup_rows=0, clock=CLOCK)
        return Observed(joined, {**requester_facts(lines), **server_facts(served)})

    def stop(self) -> None:
        """End everything that was started. Never raises: nor does the stop() of each part."""
        if self._standstill:
            self._standstill.end()
        for program in (self._requester, self._server, self._name_server):
            if program:
                program.stop()
        if self._credentials:
            with suppress(OSError):
                Path(self._credentials).unlink()

    def _check_servers(self) -> None:
        for server in (self._name_server, self._server):
            if server:
                server.check()
        if self._standstill:
            self._standstill.check()

    def _check_echo(self, requester: Program, server: Program) -> None:
        """Raise RigError where reads failed, and the server does not answer its own host either."""
        ends = [(line["outcome"], line["answer"] or {}) for line in requester.lines.of("request")]
        if not any(outcome or answer.get("outcome") for outcome, answer in ends):
            return
        place, ports = self._place, server.lines.of("ready")[0]
        module = "hil.network.peers.gateway.echo_check"
        argv = [sys.executable, "-m", module, place.host_address, str(ports["port"]), str(ports["tls_port"])]
        log = self._folder / "echo-check.log"
        status, said = run_to_end(place.spawner, argv, ECHO_CHECK_TIMEOUT_S, log_path=log)
        if status:
            raise RigError(
                f"Reads of board {place.board.id} failed, and this host gets no proper answer from "
                f"its echo server on {place.host_address} either: {said or how_ended(status)}.",
                log=str(log),
                next_step="find out what answers there (ss -lntp, nft list ruleset), then run again.",
            )

    def _start_server(self) -> Program:
        place = self._place
        ports = (HTTP_PORT, HTTPS_PORT) if place.spawner.isolated else (0, 0)
        arguments = [
            f"--address={place.host_address}",
            f"--port={ports[0]}",
            f"--tls-port={ports[1]}",
            f"--attempts={PORT_ATTEMPTS}",
            f"--certificate={place.certificates.server_cert_file}",
            f"--key={place.certificates.server_key_file}",
            f"--lines={self._folder / 'echo-server.jsonl'}",
        ]
        module = "hil.network.peers.gateway.echo_server"
        title = f"The echo server on {place.host_address}"
        return Program(place.spawner, title, module, arguments, self._folder, "echo-server")

    def _start_requester(self, plan: RequesterPlan) -> Program:
        plan_file, name = self._folder / "requester-plan.json", "requester"
        if self._parameters["transport"] == "password":
            self._credentials = self._write_credentials()
            plan = replace(plan, credentials_file=self._credentials)
        plan.write(plan_file)
        arguments = [str(plan_file), str(self._folder / f"{name}.jsonl")]
        module = "hil.network.peers.gateway.requester"
        return Program(self._place.spawner, "The requester", module, arguments, self._folder, name)

    def _write_credentials(self) -> str:
        """Write user name and password where the run's secrets are; the requester removes the file."""
        login = self._place.broker.login
        secrets = self._place.certificates.server_key_file.parent
        descriptor, path = tempfile.mkstemp(prefix="requester-", dir=secrets)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{login.username}\n{login.password}\n")
        return path

    def _make_plan(self) -> RequesterPlan:
        place, parameters = self._place, self._parameters
        if not place.board.mac:
            raise ConfigError(
                f"{place.board.where}: board {place.board.id!r} has no 'mac', which its topics need.",
                next_step="add 'mac: …' to its entry; esptool read-mac shows it.",
            )
        profile = str(parameters["profile"])
        broker = place.broker
        password = parameters["transport"] == "password"
        return RequesterPlan(
            broker_address=broker.address,
            broker_port=broker.ports.password if password else broker.ports.tcp,
            credentials_file="",
            topic_root=f"hil/{place.board.mac.replace(':', '')}",
            profiles=PROFILES if profile == "all" else (profile,),
            order=str(parameters["order"]),
            phases=(self._number("reads"), self._number("reads_after_reconnect")),
            pause_ms=self._number("pause_ms"),
            timeout_ms=self._number("timeout_ms"),
            qos=self._number("qos"),
            reconnect=str(parameters["reconnect"]),
        )

    def _number(self, name: str) -> int:
        return int(str(self._parameters[name]))

    def _raise_requester_error(self, requester: Program) -> None:
        errors = requester.lines.of("error")
        if not errors:
            return
        where = f"{self._place.case.bench} on board {self._place.board.id}"
        sentence = f"{where}: {errors[0]['sentence']}."
        if errors[0]["owner"] == FirmwareError.owner:
            raise FirmwareError(sentence, next_step="look at the board's console log.")
        raise RigError(sentence, log=str(self._place.broker.log_path), next_step=AGAIN)

    def _check_count(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Raise RigError where the requester sent another number of requests than it was to."""
        plan = self._make_plan()
        planned = sum(plan.phases) * len(plan.profiles)
        sent = sum(line["event"] == "request" for line in lines)
        if sent != planned:
            raise RigError(
                f"The requester of board {self._place.board.id} ended after {sent} of {planned} requests.",
                log=str(self._folder / "requester.log"),
                next_step=AGAIN,
            )

    def _check_speed(self, served: Sequence[Mapping[str, Any]]) -> None:
        """Raise RigError where the server was too slow for the requests to tell of the board."""
        taken_us = sorted(line["server_us"] for line in served if line["event"] == "request")
        p95_us = taken_us[95 * (len(taken_us) - 1) // 100] if taken_us else 0  # of a few not the slowest one
        if p95_us > SERVER_P95_MAX_US:
            raise RigError(
                "The echo server on this host was too slow to measure board "
                f"{self._place.board.id}: 95 % of its answers took up to {p95_us / 1e3:.1f} ms; "
                f"the limit is {SERVER_P95_MAX_US / 1e3:g} ms.",
                log=str(self._folder / "echo-server.jsonl"),
                next_step="find what else loads this machine (top), then run again.",
            )

    def _check_answers(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Raise FirmwareError where something came on a response topic that answers no request."""
        for event, what in (("garbage", "is not an answer"), ("unexpected", "answers no request")):
            found = [line for line in lines if line["event"] == event]
            if found:
                words = found[0].get("excerpt", found[0].get("id"))
                raise FirmwareError(
                    f"Board {self._place.board.id} published {len(found)} time(s) on the response topic of "
                    f"profile {found[0]['profile']} what {what}: {words!r}."
                )
