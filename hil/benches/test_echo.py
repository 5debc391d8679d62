# SPDX-License-Identifier: Apache-2.0
"""Echo: how long a message takes to a peer and back, by QoS, payload, rate and path."""

from hil.benches.plausible import assert_messages_follow_the_plan
from hil.samples import OK, Measure


def test_echo(measure: Measure) -> None:
    """What is done came back at least once, and no two echoes came in the same place."""
    for samples in measure():
        assert_messages_follow_the_plan(samples)
        for row in samples.rows(outcome=OK):
            assert row.copies >= 1
        for row in samples.rows():
            assert (row.copies > 0) == (row.order > 0)
        returned = sorted((row for row in samples.rows() if row.order > 0), key=lambda row: row.order)
        for place, row in enumerate(returned, start=1):
            assert row.order == place
