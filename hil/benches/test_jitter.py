"""Jitter of a periodic task: its lateness, its periods, its wait for what it shares with tasks below."""

from collections.abc import Callable


def test_jitter(measure: Callable[[], object]) -> None:
    """The case is measured on the board that it is planned for."""
    measure()
