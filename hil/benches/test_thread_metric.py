# SPDX-License-Identifier: Apache-2.0
"""Thread-Metric: how often an operation of the kernel is done in a window of time."""

from hil.benches.plausible import assert_late_rows_are_void
from hil.samples import Measure

MILLION = 1_000_000


def test_thread_metric(measure: Measure) -> None:
    """Rate and score are what the windows and their counts make of them, but for rounding."""
    for samples in measure():
        assert_late_rows_are_void(samples)
        for row in samples.rows():
            assert row.core == samples.number("task_core")
            assert row.window_us > 0
            rate = row.operations_count * MILLION / row.window_us
            assert abs(row.rate_ops - rate) <= 1
            if row.basic_count > 0:
                basic_rate = row.basic_count * MILLION / row.basic_window_us
                assert abs(row.score_count - rate * MILLION / basic_rate) <= 1
