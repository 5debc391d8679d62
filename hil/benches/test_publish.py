# SPDX-License-Identifier: Apache-2.0
"""Publish over TCP, TLS and mutual TLS: the latency from planned send to acknowledgement."""

from hil.benches.plausible import OVERRUN, assert_messages_follow_the_plan
from hil.samples import Measure


def test_publish(measure: Measure) -> None:
    """A sample that the publisher did not take, or only after its time-out, took none of its time."""
    for samples in measure():
        assert_messages_follow_the_plan(samples)
        for row in samples.rows(outcome=OVERRUN):
            assert row.mutex_wait_us == row.serialise_us == row.publish_call_us == 0
