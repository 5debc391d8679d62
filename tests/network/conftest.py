# SPDX-License-Identifier: Apache-2.0
"""What several modules share: certificates, a broker with gateways, boards with iperf, a module's lab."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hil.network.certificates import Certificates, make_certificates
from tests.network.gateway_rig import Bench, running_bench
from tests.network.iperf_device_rig import Board, Network


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """For the loopback interface and for the host's address in a virtual rack."""
    return make_certificates(tmp_path_factory.mktemp("certificates"), "127.0.0.1", "10.77.0.1")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with running_bench(tmp_path_factory.mktemp("bench")) as running:
        yield running


@pytest.fixture(scope="module")
def shared() -> Iterator[Network]:
    with Network.open() as network:
        yield network


@pytest.fixture
def network(shared: Network) -> Iterator[Network]:
    """A network in which no program runs, and the boards that have been asked for in this module."""
    yield shared
    shared.clear()


@pytest.fixture
def board(network: Network) -> Board:
    return network.board()


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The lab that a module's MAKE_LAB makes in a folder."""
    with request.module.MAKE_LAB(tmp_path_factory.mktemp("lab")) as started:
        yield started
