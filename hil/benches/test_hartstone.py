# SPDX-License-Identifier: Apache-2.0
"""Hartstone-like: how much of a core periodic tasks can ask for before one misses a deadline."""

from hil.samples import OK, VOID, Measure


def test_hartstone(measure: Measure) -> None:
    """A ramp's own row sums its steps, and what it sustained is its last step or the one before."""
    for samples in measure():
        ramps = samples.rows(task=0)
        assert [row.ramp for row in ramps] == list(range(1, samples.number("ramps") + 1))
        for ramp in ramps:
            tasks = [row for row in samples.rows(ramp=ramp.ramp) if row.task > 0]
            assert ramp.activations_count == sum(row.activations_count for row in tasks)
            assert ramp.missed_count == sum(row.missed_count for row in tasks)
            assert ramp.response_max_us == max(row.response_max_us for row in tasks)
            assert ramp.step == max(row.step for row in tasks)
            assert ramp.step - 1 <= ramp.sustained_steps_count <= ramp.step
            assert ramp.outcome in (OK, VOID)
            sustained = [row.asked_permille for row in tasks if row.step == ramp.sustained_steps_count]
            assert ramp.sustained_permille == (sustained[0] if sustained else 0)
