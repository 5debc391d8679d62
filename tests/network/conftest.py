# SPDX-License-Identifier: Apache-2.0
"""Certificates that the brokers of several modules share."""

from __future__ import annotations

import pytest

from hil.network.certificates import Certificates, make_certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """For the loopback interface and for the host's address in a virtual rack."""
    return make_certificates(tmp_path_factory.mktemp("certificates"), "127.0.0.1", "10.77.0.1")
