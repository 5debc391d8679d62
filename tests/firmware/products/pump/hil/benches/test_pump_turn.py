# SPDX-License-Identifier: Apache-2.0
"""Pump turn: how long the product's pump takes to turn."""

from hil.samples import OK, Measure

PISTONS = 3


def test_pump_turn(measure: Measure) -> None:
    """Each turn moves every piston, and ends after it began."""
    for samples in measure():
        assert len(samples.rows()) == samples.number("count") + samples.number("warmup")
        for row in samples.rows():
            assert row.began_us <= row.done_us
            assert row.outcome == OK
            assert row.moves >= PISTONS  # the product's own task may turn it meanwhile
