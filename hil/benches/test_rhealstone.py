# SPDX-License-Identifier: Apache-2.0
"""Rhealstone: six operations of a real-time kernel, and the one figure made of them."""

from hil.benches.plausible import assert_late_rows_are_void, assert_rounds
from hil.samples import NOT_DONE, Measure

OPERATIONS = 6
NS_PER_S = 1_000_000_000


def test_rhealstone(measure: Measure) -> None:
    """A round ends with the mean of its operations, and a rate is how often its time fits a second."""
    for samples in measure():
        assert_late_rows_are_void(samples)
        assert_rounds(samples, "operation", range(OPERATIONS + 1))
        rows = samples.rows()
        for row in rows:
            if row.corrected_ns > 0:
                assert row.per_second_count == NS_PER_S // row.corrected_ns
        for first in range(0, len(rows), OPERATIONS + 1):
            *own, mean = rows[first : first + OPERATIONS + 1]
            if mean.outcome != NOT_DONE:
                assert mean.corrected_ns == sum(row.corrected_ns for row in own) // OPERATIONS
            assert mean.outcome == max(row.outcome for row in own)
