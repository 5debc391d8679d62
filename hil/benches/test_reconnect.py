# SPDX-License-Identifier: Apache-2.0
"""Reconnect: how long a board stays silent when the access point or the broker was away."""

from hil.samples import OK, Measure

TIMEOUT = 1


def test_reconnect(measure: Measure) -> None:
    """A gap is at least the outage that made it, and nobody notices a loss that there was not."""
    for samples in measure():
        least_us = (samples.number("outage_ms") - samples.number("interval_ms")) * 1000
        assert len(samples.rows()) == samples.number("cycles")
        for row in samples.rows():
            assert row.outcome in (OK, TIMEOUT)
            assert row.connects_failed <= row.disconnects
            assert row.detected_us == 0 or row.disconnects > 0
            assert row.connect_failed_max_us == 0 or row.connects_failed > 0
            if row.disconnects == 1 and row.connected_us > 0:
                assert row.detected_us <= row.connected_us
            assert row.outcome != OK or row.gap_us >= least_us
            assert row.outcome == OK or row.gap_us == 0
