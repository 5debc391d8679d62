# SPDX-License-Identifier: Apache-2.0
"""Memory: how long it takes to get memory, to give it back, and to work on it."""

from hil.benches.plausible import assert_late_rows_are_void
from hil.samples import NOT_DONE, OK, Measure


def test_memory(measure: Measure) -> None:
    """Rounds are alike, and a time without what reading costs is no longer than the cycles that it took."""
    for samples in measure():
        assert_late_rows_are_void(samples)
        mhz = samples.fact("cpu_mhz")
        rounds = samples.number("count") + samples.number("warmup")
        operations = [(row.operation, row.size_bytes) for row in samples.rows()]
        assert operations == operations[: len(operations) // rounds] * rounds
        for row in samples.rows(outcome=OK):
            assert row.corrected_ns <= row.raw_cycles * 1000 // mhz + 1
        for row in samples.rows(outcome=NOT_DONE):
            assert row.raw_cycles == 0
