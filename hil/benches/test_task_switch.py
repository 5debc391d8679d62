"""Task switching: how long from giving until the task that waited for it runs."""

from collections.abc import Callable


def test_task_switch(measure: Callable[[], object]) -> None:
    """The case is measured on the board that it is planned for."""
    measure()
