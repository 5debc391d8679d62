# SPDX-License-Identifier: Apache-2.0
"""Footprint: the flash that the running image takes."""

from hil.samples import Measure

SECTOR_BYTES = 4096


def test_footprint(measure: Measure) -> None:
    """An image takes something, and with what is free it fills a slot, which is whole sectors."""
    for samples in measure():
        (row,) = samples.rows()
        assert row.image_bytes > 0
        assert (row.image_bytes + row.slot_free_bytes) % SECTOR_BYTES == 0
