"""Thread-Metric: how often an operation of the kernel is done in a window of time."""

from collections.abc import Callable


def test_thread_metric(measure: Callable[[], object]) -> None:
    """The case is measured on the board that it is planned for."""
    measure()
