"""Timers of the running event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


def call_later(delay_s: float, action: Callable[[], None]) -> asyncio.TimerHandle:
    """Do something after ``delay_s`` whatever happens to the chip."""
    return asyncio.get_running_loop().call_later(delay_s, action)


class Timers:
    """What the chip does later, unless a reset comes first and cancels it."""

    def __init__(self) -> None:
        self._handles: list[asyncio.TimerHandle] = []
        self._watchdog: asyncio.TimerHandle | None = None

    def later(self, delay_s: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        handle = call_later(delay_s, action)
        self._handles.append(handle)
        return handle

    def soon(self, action: Callable[[], None]) -> None:
        self.later(0.0, action)

    def set_watchdog(self, runs: bool, delay_s: float, bite: Callable[[], None]) -> None:
        """Start the watchdog or stop it; one that runs already goes on, for nobody has fed it."""
        if not runs:
            self._stop_watchdog()
        elif self._watchdog is None:
            self._watchdog = self.later(delay_s, bite)

    def cancel_all(self) -> None:
        for handle in self._handles:
            handle.cancel()
        self._handles.clear()
        self._stop_watchdog()

    def _stop_watchdog(self) -> None:
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None
