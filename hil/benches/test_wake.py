# SPDX-License-Identifier: Apache-2.0
"""Wake: from the end of a light sleep to the first message that the broker has acknowledged."""

from hil.samples import OK, Measure

TIMEOUT = 1


def test_wake(measure: Measure) -> None:
    """It slept as long as it was asked to, as far as clocks agree; what was acknowledged had connected."""
    for samples in measure():
        rows = samples.rows()
        assert len(rows) == samples.number("cycles")
        for row in rows:
            assert row.asleep_us >= 0.9 * 1000 * samples.number("sleep_ms")
            assert row.connect_us > 0
            assert row.outcome in (OK, TIMEOUT)
            assert (row.outcome == OK) == (row.publish_us > 0)
