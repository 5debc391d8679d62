"""Delivery: whether messages reach a subscriber, how late, and where those are lost that do not."""

from collections.abc import Callable


def test_delivery(measure: Callable[[], object]) -> None:
    """The case is measured on the board that it is planned for."""
    measure()
