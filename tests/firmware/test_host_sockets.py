# SPDX-License-Identifier: Apache-2.0
"""The host build's sockets have lwIP's sizes: window, send buffer and segments, as a capture shows them.

The receive window is announced in whole segments of what the peer sends, so it is the largest multiple of
that which is not larger than the window set.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.boards.rack_tools import running_rack
from tests.host_builds import build_sanitized
from tests.network.socket_flow import BoardEnd, Flow, Role, captured_flow

pytestmark = pytest.mark.slow

AIR_DELAY_US = 5000
MSS = 1440
PORTS = itertools.count(5201)
RUN_MS = 300  # thirty round trips: slow start is over after a few


@pytest.fixture(scope="module")
def programs() -> Path:
    return build_sanitized("test_lwip_flow") / "test"


@pytest.fixture(scope="module")
def end(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoardEnd]:
    with running_rack(tmp_path_factory.mktemp("sockets") / "rack") as rack:
        rack.air.set("b1", "both", delay_us=AIR_DELAY_US)
        yield BoardEnd(rack, "b1")


@pytest.mark.parametrize(
    ("window", "role"), [(2920, "client"), (5760, "server"), (23040, "client"), (65535, "server")]
)
def test_receive_window_is_what_was_set(
    end: BoardEnd, programs: Path, tmp_path: Path, window: int, role: Role
) -> None:
    """The board never announces more than its window, and announces all of it; its peer never sends more."""
    flow = Flow(role, sends=False, options={"window": window, "run_ms": RUN_MS})
    result, facts = captured_flow(end, programs / "test_lwip_flow", flow, tmp_path, next(PORTS))
    assert result.sizes["window"] == window
    assert facts.window_max_bytes == window // MSS * MSS
    assert facts.in_flight_max_bytes <= facts.window_max_bytes


@pytest.mark.parametrize("buffer", [2920, 5760, 23040, 65535])
def test_send_buffer_is_what_was_set(end: BoardEnd, programs: Path, tmp_path: Path, buffer: int) -> None:
    """The board has never more bytes unacknowledged than its send buffer holds, and as many as that."""
    flow = Flow("client", sends=True, options={"buffer": buffer, "run_ms": RUN_MS})
    result, facts = captured_flow(end, programs / "test_lwip_flow", flow, tmp_path, next(PORTS))
    assert result.sizes["buffer"] == buffer
    assert facts.in_flight_max_bytes == buffer


@pytest.mark.parametrize(
    ("mss", "sends", "role"),
    [(160, True, "client"), (160, False, "server"), (1460, True, "server"), (1460, False, "client")],
)
def test_segments_have_the_size_that_was_set(
    end: BoardEnd, programs: Path, tmp_path: Path, mss: int, sends: bool, role: Role
) -> None:
    """Both ways: the size is announced, answered by the socket, and that of the segments, without options."""
    flow = Flow(role, sends=sends, options={"mss": mss, "run_ms": RUN_MS})
    result, facts = captured_flow(end, programs / "test_lwip_flow", flow, tmp_path, next(PORTS))
    announced = facts.sender_syn_mss_bytes if sends else facts.receiver_syn_mss_bytes
    assert (announced, result.sizes["mss"], facts.largest_segment_bytes) == (mss, mss, mss)
    assert facts.header_bytes == facts.segments_count * 40


def test_the_smaller_segment_size_holds(end: BoardEnd, programs: Path, tmp_path: Path) -> None:
    """A peer that announces less gets less, and the socket says so; the window stays what it is."""
    for sends in (True, False):
        flow = Flow("client", sends=sends, options={"run_ms": RUN_MS}, peer_mss=536)
        result, facts = captured_flow(end, programs / "test_lwip_flow", flow, tmp_path, next(PORTS))
        assert (result.sizes["mss"], facts.largest_segment_bytes) == (536, 536)
        assert sends or facts.window_max_bytes == 5760
