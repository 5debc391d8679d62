"""Hartstone-like: how much of a core periodic tasks can ask for before one misses a deadline."""

from collections.abc import Callable


def test_hartstone(measure: Callable[[], object]) -> None:
    """The case is measured on the board that it is planned for."""
    measure()
