"""Reconnect: how long a board stays silent when the access point or the broker was away."""

from collections.abc import Callable


def test_reconnect(measure: Callable[[], object]) -> None:
    """The case is measured on the board that it is planned for."""
    measure()
