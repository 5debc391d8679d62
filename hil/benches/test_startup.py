"""Startup: from reset to the network, and to the first message that the broker acknowledged."""

from collections.abc import Callable


def test_startup(measure: Callable[[], object]) -> None:
    """The case is measured on the board that it is planned for."""
    measure()
