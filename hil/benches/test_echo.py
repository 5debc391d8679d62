"""Echo: how long a message takes to a peer and back, by QoS, payload, rate and path."""

from collections.abc import Callable


def test_echo(measure: Callable[[], object]) -> None:
    """The case is measured on the board that it is planned for."""
    measure()
