# SPDX-License-Identifier: Apache-2.0
"""Sections: where the running image lies, section by section."""

from hil.samples import Measure


def test_sections(measure: Measure) -> None:
    """A chip's image has something in each of them."""
    for samples in measure():
        (row,) = samples.rows()
        for name in ("text_bytes", "rodata_bytes", "iram_bytes", "data_bytes", "bss_bytes"):
            assert getattr(row, name) > 0, name
