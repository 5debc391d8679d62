# SPDX-License-Identifier: Apache-2.0
"""A board's console: lines out of bytes, a log of both directions, secrets masked in it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Protocol

LINE_BYTES_MAX = 65536
MASK = "***"
# What a crash prints of its memory: ESP-IDF v5.5, espcoredump/src/core_dump_uart.c
DUMP_BEGINS = "= CORE DUMP START ="
DUMP_ENDS = "= CORE DUMP END ="
SECRET_CHARACTERS_MIN = 4  # a shorter one would mask innocent text
# C0 but for the tab, DEL, C1, and what Unicode takes for the end of a line: noise on the wire reads as these
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")


def printable(line: str) -> str:
    """Return a console line as a sentence may quote it: one line, whatever noise is in it."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", _COLOUR.sub("", line))


class Console(Protocol):
    """A serial port, or what plays one."""

    def read(self, timeout_s: float) -> bytes:
        """Return bytes as soon as there are some, or ``b""`` after ``timeout_s`` seconds.

        Raises:
            RigError: the port is gone.
        """

    def write(self, data: bytes) -> None:
        """Write all bytes."""


class Lines:
    """Lines of a console. ``last`` are the latest of them, for error sentences."""

    def __init__(
        self,
        console: Console,
        *,
        log: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._log = log or _discard
        self._clock = clock
        self._buffer = bytearray()
        self._secrets: set[str] = set()
        self._dumped = -1  # lines of the core dump that is coming in; below 0 where none is
        self.last: list[str] = []
        self.bytes_received = 0

    def add_secret(self, text: str) -> None:
        """Mask a text, and each line of it, in everything that is logged or quoted from now on."""
        parts = [part for part in (text, *text.splitlines()) if len(part) >= SECRET_CHARACTERS_MIN]
        self._secrets.update(parts)
        self._secrets.update(repr(part)[1:-1] for part in parts)  # as an error sentence quotes it

    def masked(self, line: str) -> str:
        for secret in sorted(self._secrets, key=len, reverse=True):
            line = line.replace(secret, MASK)
        return line

    def write(self, command: bytes, *, shown: str = "") -> None:
        """Write a command line; ``shown`` stands for it in the log where it carries a secret."""
        self._log("> " + self.masked(shown or command.decode("ascii", "replace").strip()))
        self._console.write(command)

    @property
    def has_line(self) -> bool:
        """Whether a whole line has arrived that was not read yet."""
        return b"\n" in self._buffer

    def read(self, deadline: float) -> str | None:
        """Return the next line without its end, or None when none is complete by ``deadline``."""
        while (end := self._buffer.find(b"\n")) < 0:
            remaining_s = deadline - self._clock()
            chunk = self._console.read(max(0.0, remaining_s))
            self._buffer += chunk
            self.bytes_received += len(chunk)
            if len(self._buffer) > LINE_BYTES_MAX:  # a wrong baud rate has no line ends
                end = LINE_BYTES_MAX
                break
            if remaining_s <= 0 and not self.has_line:
                return None
        return self._take(end)

    def _take(self, end: int) -> str:
        line = self._buffer[:end].decode("latin-1").replace("\r", "")
        del self._buffer[: end + 1]
        if self._is_dump(line):
            return line
        shown = self.masked(line)
        self._log(shown)
        self.last = [*self.last[-19:], printable(shown)]
        return line

    def _is_dump(self, line: str) -> bool:
        """Say whether a line is memory, which no log takes: what is secret in it cannot be masked."""
        if self._dumped >= 0 and is_dump_line(line):
            self._dumped += 1
            return True
        if self._dumped >= 0:
            self._log(f"({self._dumped} lines of a core dump)")
        self._dumped = 0 if DUMP_BEGINS in line else -1
        return False


def is_dump_line(line: str) -> bool:
    """Say whether a line between a core dump's begin and end is of the dump itself: base64."""
    return _BASE64.fullmatch(line.strip()) is not None


def _discard(line: str) -> None:
    del line
