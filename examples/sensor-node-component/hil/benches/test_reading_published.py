# SPDX-License-Identifier: Apache-2.0
"""Reading published: the product's own readings until they are acknowledged, by the board's clock."""

import itertools

from hil.samples import Measure


def test_reading_published(measure: Measure) -> None:
    """Readings follow each other without a gap, and each is acknowledged after it was sent."""
    for samples in measure():
        rows = samples.rows()
        assert len(rows) == samples.number("count") + samples.number("warmup")
        for before, row in itertools.pairwise(rows):
            assert row.seq == before.seq + 1
        for row in rows:
            assert row.began_us <= row.done_us
