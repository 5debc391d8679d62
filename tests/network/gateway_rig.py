# SPDX-License-Identifier: Apache-2.0
"""A broker, the companion of http_gateway at work, and the lines that its programs wrote."""

from __future__ import annotations

import json
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.model import Case, Scalar, Series
from hil.network.broker import Broker
from hil.network.certificates import Certificates, make_certificates
from hil.network.name_server import PEER_NAME
from hil.network.peers.companion import Observed, Place
from hil.network.peers.gateway.companion import GatewayCompanion
from hil.network.peers.gateway.plan import RequesterPlan, Topics
from hil.network.process import LocalSpawner, Spawner
from tests.firmware.case_defaults import case_defaults
from tests.lab import wait_for
from tests.network.gateway_board import GatewayBoard
from tests.network.places import LOOPBACK, place_of

TOPICS = Topics("hil/020000000001")
DEADLINE_S = 20
PARAMETERS = case_defaults(
    "http_gateway", http="http", profile="agentoptions", reads=3, reads_after_reconnect=2, timeout_ms=5000
)


@dataclass(frozen=True)
class Bench:
    """What every case here shares."""

    broker: Broker
    certificates: Certificates

    def place(self, folder: Path, *, spawner: Spawner | None = None, **changes: Scalar) -> Place:
        folder.mkdir(exist_ok=True)
        own = {"broker": self.broker, "certificates": self.certificates}
        case = Case("http_gateway", {**PARAMETERS, **changes})
        return place_of(case, folder, spawner=spawner or LocalSpawner(), **own)

    @contextmanager
    def companion(
        self, folder: Path, spawner: Spawner | None = None, **changes: Scalar
    ) -> Iterator[tuple[GatewayCompanion, GatewayBoard]]:
        """A companion at work, and the board it works with, which is not started yet."""
        companion = GatewayCompanion(self.place(folder, spawner=spawner, **changes))
        try:
            told = companion.start()
            tls = changes.get("http") == "https"
            context = ssl.create_default_context(cafile=str(self.certificates.ca_file)) if tls else None
            server = (str(told["peer_host"]), int(told["peer_tls_port" if tls else "peer_port"]))
            broker = (self.broker.address, self.broker.ports.tcp)
            reconnect = str(changes.get("reconnect", "both"))
            yield companion, GatewayBoard(broker, TOPICS, server, context, reconnect)
        finally:
            companion.stop()

    def measure(
        self, folder: Path, trouble: str = "", spawner: Spawner | None = None, **changes: Scalar
    ) -> tuple[Observed, GatewayBoard]:
        """One case from start to finish."""
        with self.companion(folder, spawner, **changes) as (companion, board):
            board.trouble = trouble
            with board:
                assert board.ended.wait(DEADLINE_S), (folder / "requester.jsonl").read_text()
            return companion.finish(series(board)), board


@contextmanager
def running_bench(folder: Path) -> Iterator[Bench]:
    """A broker on the loopback interface."""
    certificates = make_certificates(folder / "certificates", LOOPBACK, PEER_NAME)
    broker = Broker.start(LocalSpawner(), LOOPBACK, folder / "broker", certificates)
    try:
        yield Bench(broker, certificates)
    finally:
        broker.stop()


def series(board: GatewayBoard) -> Series:
    device = {"phase1_connack_us": 11, "phase2_suback_us": 23}
    return Series(Case("http_gateway", {}), board.columns(), 0, "esp_timer", "f", "r", 1, device)


def plan_of(port: int = 0, **changes: Any) -> RequesterPlan:
    """A requester's plan of one request by one profile to a broker here; ``changes`` are its fields."""
    own = {"profiles": ("tight",), "order": "together", "phases": (1,), "pause_ms": 0, "timeout_ms": 100}
    last = {"qos": 0, "reconnect": "none"}
    return RequesterPlan(LOOPBACK, port, "", TOPICS.root, **{**own, **last, **changes})


def requester_argv(folder: Path) -> list[str]:
    """Return the command of a requester with the plan, and to the lines, of ``folder``."""
    module = "hil.network.peers.gateway.requester"
    return [sys.executable, "-m", module, str(folder / "plan.json"), str(folder / "requester.jsonl")]


def lines_of(folder: Path, name: str = "requester") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def wait_for_lines(folder: Path, event: str) -> None:
    wait_for(
        lambda: any(line["event"] == event for line in lines_of(folder)),
        lambda: f"no {event} in {folder}",
        DEADLINE_S,
    )
