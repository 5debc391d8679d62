# SPDX-License-Identifier: Apache-2.0
"""Startup: from reset to the network, and to the first message that the broker acknowledged."""

from hil.samples import OK, Measure

TIMEOUT = 1


def test_startup(measure: Measure) -> None:
    """There was one boot, so all rows have its time; what was acknowledged was connected before."""
    for samples in measure():
        rows = samples.rows()
        assert len(rows) == samples.number("cycles")
        for row in rows:
            assert row.boot_us == rows[0].boot_us > 0
            assert row.connect_us > 0
            assert row.outcome in (OK, TIMEOUT)
            assert (row.outcome == OK) == (row.publish_us > 0)
