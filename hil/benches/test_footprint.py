"""Footprint: the flash that the running image takes."""

from collections.abc import Callable


def test_footprint(measure: Callable[[], object]) -> None:
    """The case is measured on the board that it is planned for."""
    measure()
