# SPDX-License-Identifier: Apache-2.0
"""The chip's UART as an emulator has it: a FIFO each way, which loses nothing.

A pipe rather than a socket, because an emulator writes a byte at a time: a socket keeps each byte in a buffer
of its own and is full after some hundred, and there are forks of QEMU whose UART drops what finds it full.
What has no room in the pipe waits in the guest's UART.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

PIPE_BYTES = 1 << 20  # as much as a user who is not root may ask for by default
READ_BYTES = 1 << 16
READ_GAP_S = 0.001  # a reader without it is woken for each byte


class EmulatorConsole:
    """``on_output`` gets what the chip sends and returns whether there is room for more.

    ``path`` is a name for the two FIFOs, which are made anew. Raises OSError.
    """

    def __init__(self, path: Path, on_output: Callable[[bytes], bool]) -> None:
        self.path, self._on_output = path, on_output
        self._loop = asyncio.get_running_loop()
        self._input, self._output = (self._open(suffix) for suffix in ("in", "out"))
        self._waiting = bytearray()
        self._gap: asyncio.TimerHandle | None = None
        self._closed = False
        self.resume()

    def open_for_chip(self) -> tuple[int, int]:
        """Open the chip's ends, from which it reads and to which it writes; there it waits for room."""
        return os.open(self._fifo("in"), os.O_RDONLY), os.open(self._fifo("out"), os.O_WRONLY)

    def write(self, data: bytes) -> None:
        """Send to the chip; what its UART does not take yet waits."""
        self._waiting += data
        self._writable()

    def resume(self) -> None:
        """Take output again, after ``on_output`` had no room."""
        if not self._closed and self._gap is None:
            self._loop.add_reader(self._output, self._readable)

    def drain(self) -> bytes:
        """Return what the chip has sent and nobody has read yet."""
        output = bytearray()
        while data := self._read():
            output += data
        return bytes(output)

    def close(self) -> None:
        self._closed = True
        if self._gap:
            self._gap.cancel()
        for fd, remove in ((self._output, self._loop.remove_reader), (self._input, self._loop.remove_writer)):
            remove(fd)
            os.close(fd)
        for suffix in ("in", "out"):
            self._fifo(suffix).unlink(missing_ok=True)

    def _fifo(self, suffix: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{suffix}")

    def _open(self, suffix: str) -> int:
        fifo = self._fifo(suffix)
        fifo.unlink(missing_ok=True)
        os.mkfifo(fifo, 0o600)
        fd = os.open(fifo, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        with contextlib.suppress(OSError):  # beyond what this user may have; 64 KiB do
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        return fd

    def _readable(self) -> None:
        self._loop.remove_reader(self._output)
        data = self._read()
        if not data or self._on_output(data):
            self._gap = self._loop.call_later(READ_GAP_S, self._gap_over)

    def _gap_over(self) -> None:
        self._gap = None
        self.resume()

    def _read(self) -> bytes:
        try:
            return os.read(self._output, READ_BYTES)
        except BlockingIOError:
            return b""

    def _writable(self) -> None:
        try:
            written = os.write(self._input, self._waiting) if self._waiting else 0
        except BlockingIOError:
            written = 0
        del self._waiting[:written]
        if self._waiting:
            self._loop.add_writer(self._input, self._writable)
        else:
            self._loop.remove_writer(self._input)
