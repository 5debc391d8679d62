"""The host program that an image carries, run as the board's application.

Its stdin, stdout and stderr are the UART. It is killed with SIGKILL, as power and EN do, and by the
kernel when the board's own process dies, however that dies.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
# What a program on the host needs and an ESP32 has no notion of.
_INHERITED = ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS")
_EXIT_NOT_STARTED = 127


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
        """Send to the application; what it does not take in time is lost, as in a full receive buffer."""
        try:
            self.uart.send(data)
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
