# SPDX-License-Identifier: Apache-2.0
"""``watched://<number>/<any other port>``: that port, known to whoever asked for the address.

esptool hands out no port before it has connected, and who waits for that may want to give up: closing the
port ends it. Afterwards ``listen`` hands over what arrives at once: pytest-embedded asks every 50 ms
(``read_all``), which would be in the time of each line, so it gets nothing. Nor does it learn of a connection
that was lost, for it would open the port again behind the back of the one who writes. A chip that is a USB
device itself vanishes at its reset: its port is lost only where it does not come back.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import serial

SCHEME = "watched"
_numbers = itertools.count(1)
_watchers: dict[str, list[Any]] = {}


@contextmanager
def watched(url: str, ports: list[Any]) -> Iterator[str]:
    """Give the address under which ``url`` is opened meanwhile; each such port is put into ``ports``."""
    number = str(next(_numbers))
    _watchers[number] = ports
    try:
        yield f"{SCHEME}://{number}/{url}"
    finally:
        del _watchers[number]


def serial_class_for_url(address: str) -> tuple[str, type]:
    """Return a port's own address and class, which ``serial_for_url`` asks for. Raises ValueError."""
    number, _, url = address[len(f"{SCHEME}://") :].partition("/")
    if number not in _watchers:
        raise ValueError(f"nobody watches {address!r} any more")
    ports = _watchers[number]
    plain = serial.serial_for_url(url, do_not_open=True)

    class WatchedPort(type(plain)):  # type: ignore[misc] # whatever class the address has
        lost: Exception | None = None

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            ports.append(self)

        def read_all(self) -> bytes:
            """Return nothing: what arrives is for the listener."""
            return b""

        def listen(self, take: Callable[[bytes], object]) -> None:
            """Hand over bytes as they arrive, until the port is closed or lost. Starts a thread."""
            reader = threading.Thread(target=_listen, args=(self, take), name="console-reader", daemon=True)
            reader.start()

    return str(plain.port), WatchedPort


def _listen(port: Any, take: Callable[[bytes], object]) -> None:
    while port.is_open and port.lost is None:
        try:
            data = port.read(1)  # waits for as long as the port's timeout says
            if data and (waiting := port.in_waiting):
                data += port.read(waiting)
        except Exception as error:  # each class has its own
            if port.is_open and getattr(port, "is_back", bool)():
                continue
            if port.is_open:
                port.lost = error
            return
        if data:
            take(data)
