# SPDX-License-Identifier: Apache-2.0
"""What several modules share: certificates of brokers, and a broker with gateways."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hil.network.certificates import Certificates, make_certificates
from tests.network.gateway_rig import Bench, running_bench


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """For the loopback interface and for the host's address in a virtual rack."""
    return make_certificates(tmp_path_factory.mktemp("certificates"), "127.0.0.1", "10.77.0.1")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with running_bench(tmp_path_factory.mktemp("bench")) as running:
        yield running
