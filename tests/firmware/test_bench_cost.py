# SPDX-License-Identifier: Apache-2.0
"""The cost bench on the host build: its parts with a counter that is played, and without one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hil.base.errors import ConfigError
from tests.firmware import kernel_rig
from tests.firmware.kernel_rig import OK, Board
from tests.host_builds import build_sanitized

pytestmark = pytest.mark.slow

PARTS = (
    "serialise",
    "publish_qos0",
    "publish_qos1",
    "puback_in",
    "tcp_out",
    "http_get",
    pytest.param("task_switch", marks=pytest.mark.alone),  # a row during which the host was late is void
    "queue",
    "mutex",
)


@pytest.fixture(scope="module")
def board() -> Iterator[Board]:
    with kernel_rig.board(build_sanitized("counted_cost") / "test" / "counted_cost") as running:
        yield running


@pytest.mark.parametrize("part", PARTS)
def test_a_part_ends_each_time_and_leaves_nothing_behind(board: Board, part: str) -> None:
    """Also with the largest payload; a second run of the part finds its port free and no memory gone."""
    for again in range(3):
        series = board.run("cost", part=part, payload_bytes=1024, count=4, warmup=2)
        assert (series.rows, series.warmup_rows) == (6, 2)
        assert set(series.columns["outcome"]) == {OK}
        assert all(series.columns["cost_instructions"])
        assert series.clock == "instructions"
        if again == 1:
            free_bytes = board.free_bytes()
    board.wait_for_free_bytes(free_bytes)


def test_a_boot_has_one_row(board: Board) -> None:
    """What it cost cannot be repeated."""
    series = board.run("cost", part="boot", count=4, warmup=2)
    assert (series.rows, series.warmup_rows) == (1, 0)


def test_what_a_host_has_not_is_refused_in_a_sentence(board: Board) -> None:
    """Parts that take NVS or mbedTLS, and all parts where nothing counts instructions."""
    for part, absent in (("nvs_commit", "NVS"), ("tls_record", "mbedTLS"), ("tls_handshake", "mbedTLS")):
        with pytest.raises(ConfigError, match=f"a host has no {absent}"):
            board.run("cost", part=part)
    with (
        kernel_rig.board(kernel_rig.firmware()) as uncounted,
        pytest.raises(ConfigError, match="this board counts no instructions"),
    ):
        uncounted.run("cost", part="queue")


def test_a_host_has_no_sections_of_a_chip(board: Board) -> None:
    """Its linker lays a program out in another way, so the bench says that the configuration is wrong."""
    with pytest.raises(ConfigError, match="no linker script of a chip"):
        board.run("sections")
