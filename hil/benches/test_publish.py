"""Publish over TCP, TLS and mutual TLS: the latency from planned send to acknowledgement."""

from collections.abc import Callable


def test_publish(measure: Callable[[], object]) -> None:
    """The case is measured on the board that it is planned for."""
    measure()
