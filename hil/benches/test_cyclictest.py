"""Wake-up latency of a thread on each core, as cyclictest of rt-tests measures a Linux."""

from collections.abc import Callable


def test_cyclictest(measure: Callable[[], object]) -> None:
    """The case is measured on the board that it is planned for."""
    measure()
