"""After McRae: six operations of a real-time kernel, memory and messages among them."""

from collections.abc import Callable


def test_mcrae(measure: Callable[[], object]) -> None:
    """The case is measured on the board that it is planned for."""
    measure()
