# SPDX-License-Identifier: Apache-2.0
"""The sensor node's messages by the board's clock and the host's: joined by number, and what is between."""

from __future__ import annotations

import pytest

from hil.model import Case, Series
from hil.probe.peers import PeerMessage
from tools.two_clocks import Seen, joined, measure, table


def test_messages_are_joined_by_their_number() -> None:
    """The warm-up, a reading that timed out, and one that the broker's client never had are left out."""
    columns = {
        "seq": (1, 2, 3, 4),
        "began_us": (0, 100, 200, 300),
        "done_us": (9, 108, 1200, 307),
        "outcome": (0, 0, 1, 0),
    }
    series = Series(Case("reading_published", {}), columns, 1, "esp_timer", "", "", 1, {}, 0.0)
    began = {seq: 1000.0 * seq for seq in columns["seq"]}
    seen = Seen(began, {seq: us + 50 for seq, us in began.items()})
    messages = [PeerMessage(2_020_000, 0, "t", b'{"seq":2,"t_us":1}', False)]
    (row,) = joined(series, seen, messages)
    assert (row.board_us, row.console_us, row.arrived_us, row.apart_us) == (8, 50, 20, 42)
    assert ": 1 of 1; not explained: 0" in table([row], [25.0])
    assert ": 0 of 1; not explained: 1" in table([row], [20.0])


@pytest.mark.slow
@pytest.mark.heavy
def test_one_run_has_both() -> None:
    """Each message of a run of the node is there three times: board, console, broker."""
    rows, late_us = measure({"count": 30, "warmup": 2, "timeout_ms": 1000})
    assert len(rows) == 30
    assert all(0 < row.board_us < 1e6 for row in rows)
    assert late_us
