# SPDX-License-Identifier: Apache-2.0
"""Delivery: whether messages reach a subscriber, how late, and where those are lost that do not."""

from itertools import pairwise

from hil.benches.plausible import assert_messages_follow_the_plan
from hil.samples import OK, Measure

TCP_ACKNOWLEDGED, TCP_UNKNOWN = 3, 4


def test_delivery(measure: Measure) -> None:
    """Connections are numbered as they come, and what the broker acknowledged was transmitted."""
    for samples in measure():
        assert_messages_follow_the_plan(samples)
        for row in samples.rows():
            assert 0 <= row.tcp <= TCP_UNKNOWN
        for before, row in pairwise(row for row in samples.rows() if row.connection > 0):
            assert before.connection <= row.connection
        if samples.number("qos") > 0:
            for row in samples.rows(outcome=OK):
                assert row.tcp == TCP_ACKNOWLEDGED
