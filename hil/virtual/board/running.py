# SPDX-License-Identifier: Apache-2.0
"""The application as the board runs it: watched by the event loop for its output and its end.

The host program that an image carries, run as the board's application.

Its stdin, stdout and stderr are the UART. It is killed with SIGKILL, as power and EN do, and by the
kernel when the board's own process dies, however that dies.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hil.virtual.board.boot import App
from hil.virtual.board.cable import Cable
from hil.virtual.board.config import BoardConfig
from hil.virtual.board.faults import ActiveFaults
from hil.virtual.board.reset import Reset

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
# What a program on the host needs and an ESP32 has no notion of.
_INHERITED = ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS")
_EXIT_NOT_STARTED = 127
# The faults that the app's surroundings have, by the variable that tells it of them as it starts.
_TOLD = {
    "crystal": "VBOARD_CRYSTAL_PPM",
    "rssi": "VBOARD_RSSI_DBM",
    "channel": "VBOARD_CHANNEL",
}


@dataclass(frozen=True)
class AppStart:
    """What to start, and in which environment; ``netns`` is a network namespace's path."""

    elf: bytes
    name: str
    environment: Mapping[str, str]
    flash_fd: int
    netns: Path | None = None


class AppProcess:
    """A running application. ``uart`` is the board's end of its serial port, not blocking."""

    def __init__(self, start: AppStart) -> None:
        self.uart, theirs = socket.socketpair()
        self.uart.setblocking(False)
        elf_fd = os.memfd_create(start.name)
        try:
            with os.fdopen(os.dup(elf_fd), "wb") as file:
                file.write(start.elf)
            self._process = _spawn(start, elf_fd, theirs)
        except OSError:
            self.uart.close()
            raise
        finally:
            theirs.close()
            os.close(elf_fd)
        self.pid = self._process.pid
        self.pidfd = os.pidfd_open(self.pid)

    def write(self, data: bytes) -> None:
        """Send to the application; what it does not take in time is lost, as in a full receive buffer.

        CR becomes LF, as in ESP-IDF's stdin (CONFIG_NEWLIB_STDIN_LINE_ENDING_CR, its default).
        """
        try:
            self.uart.send(data.replace(b"\r", b"\n"))
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            return

    def drain(self) -> bytes:
        """Return what the application wrote and nobody has read yet."""
        output = bytearray()
        while chunk := self.read(1 << 16):
            output += chunk
        return bytes(output)

    def read(self, limit: int) -> bytes:
        """Return at most ``limit`` bytes, none where there are none now."""
        try:
            return self.uart.recv(limit)
        except (BlockingIOError, ConnectionResetError):
            return b""

    def signal(self, number: signal.Signals) -> None:
        """Signal the application and whatever it has started."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return

    def wait(self) -> int:
        """Reap the application; return its exit status, negative for a signal."""
        return self._process.wait()

    def close(self) -> int:
        """Kill the application if it runs, release what it held, and return its exit status."""
        self.signal(signal.SIGKILL)
        status = self.wait()
        os.close(self.pidfd)
        self.uart.close()
        return status


def _spawn(start: AppStart, elf_fd: int, uart: socket.socket) -> subprocess.Popen[bytes]:
    program = f"/proc/self/fd/{elf_fd}"
    enter = ["nsenter", f"--net={start.netns}"] if start.netns else []
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    parent = os.getpid()
    return subprocess.Popen(
        [*enter, program] if enter else [start.name],
        executable=None if enter else program,
        stdin=uart.fileno(),
        stdout=uart.fileno(),
        stderr=uart.fileno(),
        pass_fds=(elf_fd, start.flash_fd),
        env={**inherited, **start.environment, "VBOARD_FLASH_FD": str(start.flash_fd)},
        process_group=0,
        preexec_fn=lambda: _prepare(parent),  # safe: this process has one thread
    )


def _prepare(parent: int) -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(_EXIT_NOT_STARTED)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


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
        self._frozen = False
        if frozen:
            self.freeze()
        else:
            self.resume_output()

    def freeze(self) -> None:
        """Stop the app in its tracks; what it has written already waits."""
        self._frozen = True
        self.process.signal(signal.SIGSTOP)
        self._loop.remove_reader(self.process.uart)

    def thaw(self) -> None:
        """Let a frozen app go on."""
        self._frozen = False
        self.process.signal(signal.SIGCONT)
        self.resume_output()

    def resume_output(self) -> None:
        """Take the app's output again, after ``on_output`` had no room; a frozen app's waits on."""
        if not self._frozen:
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


class AppRunner:
    """The board's one application, at the chip's end of ``cable``; ``info`` is of the one that ran last.

    ``on_exit`` gets the status of an app that ended by itself.
    """

    def __init__(
        self, config: BoardConfig, flash_fd: int, cable: Cable, on_exit: Callable[[int], None]
    ) -> None:
        self._config, self._flash_fd, self._cable, self._on_exit = config, flash_fd, cable, on_exit
        self._running: RunningApp | None = None
        self.info: App | None = None

    @property
    def pid(self) -> int | None:
        """The process of the app that runs, None where none does."""
        return self._running.process.pid if self._running else None

    @property
    def elf_sha256(self) -> bytes:
        """Of the app that ran last."""
        return self.info.description.elf_sha256 if self.info else b""

    def start(self, info: App, reset: Reset, started_ns: int, faults: ActiveFaults) -> None:
        """Start an app; ``started_ns`` is CLOCK_MONOTONIC at reset. Raises OSError where that fails."""
        self.info = info
        start = _app_start(info, self._config, self._flash_fd, reset, started_ns, faults)
        self._running = RunningApp(start, self._send, self._on_exit, frozen="silent" in faults)

    def close(self) -> None:
        """End the app if it runs."""
        if self._running:
            self._running.close()
            self._running = None

    def write(self, data: bytes) -> None:
        """Let the app read ``data``."""
        if self._running:
            self._running.process.write(data)

    def drain(self) -> None:
        """Send what the app has written and nobody has read yet."""
        if self._running:
            self._cable.transmit(self._running.process.drain())

    def freeze(self) -> None:
        """Stop the app in its tracks."""
        if self._running:
            self._running.freeze()

    def thaw(self) -> None:
        """Let a frozen app go on."""
        if self._running:
            self._running.thaw()

    def resume_output(self) -> None:
        """Take the app's output again, now that the cable has room."""
        if self._running:
            self._running.resume_output()

    def _send(self, data: bytes) -> bool:
        self._cable.transmit(data)
        return self._cable.has_room


def _app_start(
    info: App, config: BoardConfig, flash_fd: int, reset: Reset, started_ns: int, faults: ActiveFaults
) -> AppStart:
    environment = {
        "VBOARD_APP_OFFSET": f"{info.partition.offset:#x}",
        "VBOARD_MAC": config.mac_text,
        "VBOARD_RESET_REASON": reset.reason,
        "VBOARD_CHIP": config.chip.name,
        "VBOARD_BOOT_US": str(started_ns // 1000),
    }
    if config.network:
        environment |= dict(zip(("VBOARD_AP", "VBOARD_AP_PASSWORD"), config.network, strict=True))
    if config.strict is not None:
        environment["VBOARD_STRICT"] = "fail" if config.strict else "warn"
    environment |= {_TOLD[name]: str(value) for name, value in faults.values.items() if name in _TOLD}
    return AppStart(info.elf, info.description.project, environment, flash_fd, config.netns)
