"""An application's process watched by the event loop: its output as it comes, and its end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from hil.virtual.board.app import AppProcess, AppStart
from hil.virtual.board.boot import App
from hil.virtual.board.config import BoardConfig
from hil.virtual.board.resets import Reset

_READ_BYTES = 4096


class RunningApp:
    """``on_output`` gets what the app writes and returns whether there is room for more.

    ``on_exit`` gets its status, after all output has been handed over. A ``frozen`` app is stopped before
    anything it writes is seen. Raises OSError where the app cannot be started.
    """

    def __init__(
        self,
        start: AppStart,
        on_output: Callable[[bytes], bool],
        on_exit: Callable[[int], None],
        *,
        frozen: bool,
    ) -> None:
        self.process = AppProcess(start)
        self._on_output, self._on_exit = on_output, on_exit
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self.process.pidfd, self._exited)
        if frozen:
            self.freeze()
        else:
            self.resume_output()

    def freeze(self) -> None:
        """Stop the app in its tracks; what it has written already waits."""
        self.process.signal(signal.SIGSTOP)
        self._loop.remove_reader(self.process.uart)

    def thaw(self) -> None:
        """Let a frozen app go on."""
        self.process.signal(signal.SIGCONT)
        self.resume_output()

    def resume_output(self) -> None:
        """Take the app's output again, after ``on_output`` had no room."""
        self._loop.add_reader(self.process.uart, self._readable)

    def close(self) -> None:
        """Kill the app if it runs."""
        self._loop.remove_reader(self.process.pidfd)
        self._loop.remove_reader(self.process.uart)
        self.process.close()

    def _readable(self) -> None:
        data = self.process.read(_READ_BYTES)
        room = bool(data) and self._on_output(data)
        if not room:  # or the app has closed its console
            self._loop.remove_reader(self.process.uart)

    def _exited(self) -> None:
        status = self.process.wait()
        self._on_output(self.process.drain())
        self._on_exit(status)


def app_start(info: App, config: BoardConfig, flash_fd: int, reset: Reset, started_ns: int) -> AppStart:
    """Say how ``info`` is started on this board; ``started_ns`` is CLOCK_MONOTONIC at reset."""
    environment = {
        "VBOARD_APP_OFFSET": f"{info.partition.offset:#x}",
        "VBOARD_MAC": config.mac_text,
        "VBOARD_RESET_REASON": reset.reason,
        "VBOARD_CHIP": config.chip.name,
        "VBOARD_BOOT_US": str(started_ns // 1000),
    }
    return AppStart(info.elf, info.description.project, environment, flash_fd, config.netns)
