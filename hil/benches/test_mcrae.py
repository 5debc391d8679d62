# SPDX-License-Identifier: Apache-2.0
"""After McRae: six operations of a real-time kernel, memory and messages among them."""

from hil.benches.plausible import assert_late_rows_are_void, assert_rounds
from hil.samples import NOT_DONE, Measure


def test_mcrae(measure: Measure) -> None:
    """A round is one operation of each scenario, and what was not done has no time."""
    for samples in measure():
        assert_late_rows_are_void(samples)
        assert_rounds(samples, "scenario", range(6))
        for row in samples.rows(outcome=NOT_DONE):
            assert row.corrected_ns == 0
