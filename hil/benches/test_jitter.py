# SPDX-License-Identifier: Apache-2.0
"""Jitter of a periodic task: its lateness, its periods, its wait for what it shares with tasks below."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from hil.benches.plausible import assert_late_rows_are_void
from hil.samples import Measure, Row


def test_jitter(measure: Measure) -> None:
    """A task wakes after its plan, and its intervals sum to what the timer advanced, give or take one.

    Where the timer falls behind the tick, wakes come before their plan by its reading: no fault of a row.
    """
    for samples in measure():
        assert_late_rows_are_void(samples)
        period_us = samples.number("period_us")
        assert len(samples.rows()) == samples.number("count") + samples.number("warmup")
        woken = [row for row in samples.rows() if row.woke_us > 0]
        for row in woken:
            assert row.planned_us <= row.woke_us <= row.acquired_us
            assert row.deviation_us == abs(row.interval_us - period_us)
            if row.isr_us > 0:
                assert row.planned_us <= row.isr_us
        for rows in _bursts(woken, period_us) if samples.keeps_time else ():
            apart_us = rows[-1].woke_us - rows[0].woke_us - sum(row.interval_us for row in rows[1:])
            host_late_us = sum(row.host_late_us for row in rows)
            assert abs(apart_us) < period_us + host_late_us, f"{rows[0]!r} to {rows[-1]!r}"


def _bursts(rows: Sequence[Row], period_us: int) -> Iterator[Sequence[Row]]:
    """Yield the rows of one grid; the next burst's begins anew."""
    steps = [row.planned_us - before.planned_us for before, row in pairwise(rows)]
    begins = [number for number, step_us in enumerate(steps, start=1) if step_us != period_us]
    for begin, end in pairwise([0, *begins, len(rows)]):
        if begin < end:
            yield rows[begin:end]
