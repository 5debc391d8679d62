# SPDX-License-Identifier: Apache-2.0
"""Task switching: how long from giving until the task that waited for it runs."""

from hil.benches.plausible import assert_late_rows_are_void
from hil.samples import NOT_DONE, OK, Measure

CORES = {"same": (0, 0), "cross": (1, 0)}  # of giver and taker
CLOCKS_US = (
    5  # by which two clocks may differ: they are read one after the other, the cores' offset is estimated
)


def test_task_switch(measure: Measure) -> None:
    """The switch is between the cores that were asked for, and two clocks agree on how long it took."""
    for samples in measure():
        assert_late_rows_are_void(samples)
        void_late_us = samples.number("void_late_us")
        placement = str(samples.parameters["placement"])
        assert len(samples.rows()) == samples.number("count") + samples.number("warmup")
        for row in samples.rows(outcome=OK):
            if placement in CORES:
                assert (row.start_core, row.end_core) == CORES[placement], repr(row)
            if void_late_us > 0:  # between the clocks' readings no host was late for longer
                assert row.corrected_ns <= (row.common_us + CLOCKS_US + void_late_us) * 1000
        for row in samples.rows(outcome=NOT_DONE):
            assert row.corrected_ns == 0
