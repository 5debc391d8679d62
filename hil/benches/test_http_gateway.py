"""HTTP gateway: an MQTT request, the GET that the board makes of it, and the MQTT answer."""

from collections.abc import Callable


def test_http_gateway(measure: Callable[[], object]) -> None:
    """The case is measured on the board that it is planned for."""
    measure()
