# SPDX-License-Identifier: Apache-2.0
"""A client id that several hosts use: whose they are, by the addresses that the rack knows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hil.base.errors import ConfigError, HilError, RigError
from hil.network.broker_watch import BROKER_LOG, BrokerWatch

RUNNING: Any = SimpleNamespace(returncode=None)
BOARDS = {"10.77.0.11": "v1", "10.77.0.12": "v2"}


def connected(folder: Path, client: str, addresses: list[str]) -> None:
    """Write what mosquitto logs of a client's connections."""
    second = int(time.time())
    lines = [
        f"{second}: New client connected from {address}:{40000 + index} as {client} (p2, c1, k60).\n"
        for index, address in enumerate(addresses)
    ]
    (folder / BROKER_LOG).write_text("".join(lines), encoding="utf-8")


@pytest.mark.parametrize(
    ("other", "boards", "error", "said"),
    [
        ("10.77.0.12", BOARDS, ConfigError, "board v1 (10.77.0.11), board v2 (10.77.0.12)"),
        ("10.77.0.99", BOARDS, RigError, "board v1 (10.77.0.11), 10.77.0.99"),
        ("10.77.0.12", {}, RigError, "10.77.0.11, 10.77.0.12"),
    ],
)
def test_field_a_client_id_of_two_boards_is_configuration(
    tmp_path: Path, other: str, boards: Mapping[str, str], error: type[HilError], said: str
) -> None:
    """Two boards of this rack are named, and nobody is told to end a client; a stranger is the rig's."""
    connected(tmp_path, "node", ["10.77.0.11", other])
    watch = BrokerWatch(RUNNING, tmp_path / "watch.log", lambda: (), 1884, boards)
    with pytest.raises(error) as caught:
        watch.check(time.monotonic_ns() - 1_000_000_000)
    assert said in caught.value.sentence
    assert ("end the client" in caught.value.next_step) == (error is RigError)


def test_a_line_that_the_broker_is_still_writing_is_read_whole_later(tmp_path: Path) -> None:
    """A check in the midst of a line does not lose the client that the line names."""
    connected(tmp_path, "node", ["10.77.0.11", "10.77.0.12"])
    log = tmp_path / BROKER_LOG
    whole = log.read_text(encoding="utf-8")
    watch = BrokerWatch(RUNNING, tmp_path / "watch.log", lambda: (), 1884, BOARDS)
    log.write_text(whole[:-20], encoding="utf-8")
    watch.check(time.monotonic_ns() - 1_000_000_000)
    log.write_text(whole, encoding="utf-8")
    with pytest.raises(ConfigError):
        watch.check(time.monotonic_ns() - 1_000_000_000)
