# SPDX-License-Identifier: Apache-2.0
"""`publish` on ESP-IDF's linux target, under pytest-embedded's service ``idf``: function, not timing.

Started by `make idf-check`; no other run of tests collects a file of this name.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import trustme

from hil.base.errors import RigError
from hil.model import Case, Scalar
from hil.session import AgentSession
from tests.network.mqtt_rig import Mosquitto

OK = 0
COUNT, WARMUP = 20, 2
BOOT_TIMEOUT_S = 30.0
CASE_TIMEOUT_S = 60.0
POLL_S = 0.01


@dataclass(frozen=True)
class DutConsole:
    """hil.session.Console over a DUT of the linux target."""

    dut: Any

    def read(self, timeout_s: float) -> bytes:
        deadline = time.monotonic() + timeout_s
        while True:
            data: bytes = self.dut.pexpect_proc.read_nonblocking(65536, 0)
            if data or time.monotonic() >= deadline:
                return data
            if self.dut.serial.poll() is not None:
                raise RigError(f"the program ended with status {self.dut.serial.returncode}.")
            time.sleep(POLL_S)

    def write(self, data: bytes) -> None:
        self.dut.serial.write(data)


@pytest.fixture(scope="module")
def mosquitto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    with Mosquitto.run(tmp_path_factory.mktemp("mosquitto"), trustme.CA()) as broker:
        yield broker


@pytest.fixture
def session(dut: Any) -> AgentSession:
    agent = AgentSession(DutConsole(dut), "linux")
    agent.wait_ready(BOOT_TIMEOUT_S)
    return agent


def provision(session: AgentSession, broker: Mosquitto) -> None:
    files = {"ca_pem": "ca.pem", "client_cert_pem": "client.pem", "client_key_pem": "client.key"}
    pem = {field: (broker.directory / name).read_text() for field, name in files.items()}
    ports = {f"broker_{name}_port": port for name, port in broker.ports.items()}
    session.provision({**pem, "broker_host": "127.0.0.1", **ports})


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("transport", ["tcp", "tls", "mtls"])
def test_every_message_is_acknowledged(
    session: AgentSession, mosquitto: Mosquitto, transport: str, qos: int
) -> None:
    """ESP-IDF's FreeRTOS, esp-mqtt, esp-tls and Mbed TLS bring each message through; no row is missing."""
    provision(session, mosquitto)
    parameters: dict[str, Scalar] = {
        "transport": transport,
        "producer_core": "none",
        "publisher_core": "none",
        "schedule": "random",
        "interval_us": 20000,
        "count": COUNT,
        "warmup": WARMUP,
        "payload_bytes": 128,
        "qos": qos,
        "retain": 0,
        "nodelay": 0,
        "api": "publish",
        "hold_us": 0,
        "seed": 1,
        "timeout_ms": 5000,
    }
    series = session.run_case(Case("publish", parameters), timeout_s=CASE_TIMEOUT_S)
    assert (series.rows, series.warmup_rows) == (COUNT + WARMUP, WARMUP)
    assert list(series.columns["outcome"]) == [OK] * (COUNT + WARMUP)
    assert list(series.columns["planned_us"]) == sorted(series.columns["planned_us"])
    assert series.device["connects"] == 1
    assert series.device["tls_max_version"] == ("none" if transport == "tcp" else "1.2")
