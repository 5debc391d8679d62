"""Memory: how long it takes to get memory, to give it back, and to work on it."""

from collections.abc import Callable


def test_memory(measure: Callable[[], object]) -> None:
    """The case is measured on the board that it is planned for."""
    measure()
