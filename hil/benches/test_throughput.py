"""Throughput over TCP and UDP between the board and an iperf 2 on the rack's host."""

from collections.abc import Callable


def test_throughput(measure: Callable[[], object]) -> None:
    """The case is measured on the board that it is planned for."""
    measure()
