# SPDX-License-Identifier: Apache-2.0
"""Cost: what a message costs the processor, part by part, in instructions."""

from hil.samples import OK, Measure

BOOT = "boot"
FAILED = 1


def test_cost(measure: Measure) -> None:
    """A part that ended cost something. Each repetition is a row; of what a boot does once there is one."""
    for samples in measure():
        once = samples.parameters["part"] == BOOT
        rows = 1 if once else samples.number("count") + samples.number("warmup")
        assert len(samples.rows()) == rows
        for row in samples.rows():
            assert row.outcome in (OK, FAILED)
            assert (row.cost_instructions > 0) == (row.outcome == OK)
