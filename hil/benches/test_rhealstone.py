"""Rhealstone: six operations of a real-time kernel, and the one figure made of them."""

from collections.abc import Callable


def test_rhealstone(measure: Callable[[], object]) -> None:
    """The case is measured on the board that it is planned for."""
    measure()
