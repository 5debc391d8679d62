"""boot_time: what its rows must keep."""

from hil.samples import OK, Measure


def test_boot_time(measure: Measure) -> None:
    """A boot has one row; it ends after it began."""
    for samples in measure():
        (row,) = samples.rows()
        assert row.outcome != OK or row.began_us < row.done_us
