# SPDX-License-Identifier: Apache-2.0
"""Throughput over TCP and UDP between the board and an iperf 2 on the rack's host."""

from hil.samples import Measure, Samples

UINT32_MAX = 2**32 - 1


def test_throughput(measure: Measure) -> None:
    """A rate is its bytes by its interval, and the board's intervals sum to all that it received."""
    for samples in measure():
        if samples.fact("received_bytes") == 0:
            continue  # the host received, so the rows are its iperf's
        for row in samples.rows():
            assert row.interval_us > 0
            assert row.received_bps == min(row.received_bytes * 8_000_000 // row.interval_us, UINT32_MAX)
        told = sum(samples.column("received_bytes")) + samples.fact("last_partial_bytes")
        if _outlasts_its_rows(samples):  # a peer's buffers that drain slowly
            assert told <= samples.fact("received_bytes")
        else:
            assert told == samples.fact("received_bytes")


def _outlasts_its_rows(samples: Samples) -> bool:
    """Return whether it took a whole interval more than there are rows: the plan's duration has no more."""
    rows_us = sum(samples.column("interval_us"))
    return samples.fact("whole_us") >= rows_us + samples.column("interval_us")[-1]
