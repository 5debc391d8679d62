# SPDX-License-Identifier: Apache-2.0
"""The firmware with sanitizers: boards of the kernel's benches, and an agent, esp-mqtt and their brokers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from hil.session import AgentSession
from tests.firmware import kernel_rig
from tests.firmware.kernel_rig import Board
from tests.network.mqtt_driver import Driver
from tests.network.mqtt_peer import Peer
from tests.network.mqtt_rig import Mosquitto
from tests.network.publisher_rig import agent_session


@pytest.fixture(scope="module")
def board() -> Iterator[Board]:
    with kernel_rig.board(kernel_rig.firmware()) as running:
        yield running


@pytest.fixture
def one_core() -> Iterator[Board]:
    with kernel_rig.board(kernel_rig.build_for_one_core()) as running:
        yield running


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def mosquitto(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Iterator[Mosquitto]:
    with Mosquitto.run(tmp_path_factory.mktemp("mosquitto"), authority) as broker:
        yield broker


@pytest.fixture(scope="module")
def firmware() -> Path:
    return kernel_rig.firmware()


@pytest.fixture
def session(firmware: Path) -> Iterator[AgentSession]:
    with agent_session(firmware) as started:
        yield started


@pytest.fixture
def driver() -> Iterator[Driver]:
    with Driver.run() as running:
        yield running


@pytest.fixture
def peer() -> Iterator[Peer]:
    with Peer.listen() as listening:
        yield listening
