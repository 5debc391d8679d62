# SPDX-License-Identifier: Apache-2.0
"""What the samples of several benches must keep: assertions on the samples of one boot."""

from __future__ import annotations

from itertools import pairwise

from hil.samples import OK, VOID, Samples

OVERRUN = 4
OUTCOMES_OF_MESSAGES = range(OVERRUN + 1)  # ok, timeout, refused, outbox full, overrun
EARLY_US = 10_000  # a tick of 100 Hz: a periodic plan stands on ticks, and where their edges lie is estimated


def assert_messages_follow_the_plan(samples: Samples) -> None:
    """Every planned message has a row; what is done was sent after its plan, and before its time-out."""
    rows = samples.rows()
    early_us = EARLY_US if samples.parameters["schedule"] == "periodic" else 0
    timeout_us = samples.number("timeout_ms") * 1000
    assert len(rows) == samples.number("count") + samples.number("warmup")
    for before, row in pairwise(rows):
        assert before.planned_us <= row.planned_us
    for row in rows:
        assert row.outcome in OUTCOMES_OF_MESSAGES
        assert (row.outcome == OK) == (row.done_us > 0)
        assert row.outcome != OVERRUN or row.sent_us == 0
    for row in samples.rows(outcome=OK):
        assert row.planned_us - early_us <= row.sent_us
        assert row.sent_us <= row.done_us
        assert row.done_us <= row.planned_us + timeout_us


def assert_late_rows_are_void(samples: Samples) -> None:
    """A row is void exactly where the host was late, and for no other reason."""
    void_late_us = samples.number("void_late_us")
    for row in samples.rows():
        assert (row.outcome == VOID) == (0 < void_late_us <= row.host_late_us)


def assert_rounds(samples: Samples, column: str, order: range) -> None:
    """The board measures in rounds, each of which goes through ``order`` in the column."""
    rounds = samples.number("count") + samples.number("warmup")
    assert list(samples.column(column)) == list(order) * rounds
