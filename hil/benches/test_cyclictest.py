# SPDX-License-Identifier: Apache-2.0
"""Wake-up latency of a thread on each core, as cyclictest of rt-tests measures a Linux."""

from itertools import pairwise

from hil.benches.plausible import assert_late_rows_are_void
from hil.samples import OK, Measure

CORES = {"core0": [0], "core1": [1], "all": [0, 1]}


def test_cyclictest(measure: Measure) -> None:
    """Each thread accounts for all its loops, on its core, in buckets that are there once."""
    for samples in measure():
        assert_late_rows_are_void(samples)
        for thread, core in enumerate(CORES[str(samples.parameters["threads"])]):
            rows = samples.rows(thread=thread)
            assert sum(row.loops_count for row in rows) == samples.number("loops")
            assert {row.core for row in rows} == {core}
            for before, row in pairwise(samples.rows(thread=thread, outcome=OK)):
                assert before.latency_us < row.latency_us
