# SPDX-License-Identifier: Apache-2.0
"""wake_up: what its samples must keep, whatever the board."""

from hil.samples import Measure


def test_wake_up(measure: Measure) -> None:
    """Nobody is woken before the tick that was asked for, somebody just then, and each row has one."""
    for samples in measure():
        assert len(samples.rows()) == samples.number("count") + samples.number("warmup")
        assert min(row.woken_us - row.planned_us for row in samples.rows()) == 0
