# SPDX-License-Identifier: Apache-2.0
"""A board's console: lines out of bytes, a log of both directions, secrets masked in it.

Text is UTF-8; a byte that is not is the Latin-1 character of its value, so that none is lost. A line ends
with CR, LF or both. Colours and cursor movements are no part of a line: the log alone keeps them.
"""

from __future__ import annotations

import math
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
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
_ESCAPE = re.compile(
    "\x1b\\[[0-?]*[ -/]*(?:[@-~]|$)"  # colours, and how an editor of lines moves the cursor
    "|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)"  # a title, a link
    "|\x1b(?:[78=>]|\\([0-9A-Z])"  # the cursor kept, the keypad, the set of characters
)
_LATIN_1 = {0xDC00 + byte: byte for byte in range(0x80, 0x100)}  # what surrogateescape makes of a byte
_END = re.compile(rb"(?<!\r)(?:\r*+\n|(?<=[^\r])\r++)")
_AFTER_RETURN = re.compile(rb"\r*+\n")  # the rest of an end whose CR came by itself
_RETURNS = re.compile(rb"\r++(?=[^\n])")  # in front of a line: the cursor was there already


def text_of(data: bytes | bytearray) -> str:
    """Decode console bytes: UTF-8, and Latin-1 for each byte that is no UTF-8."""
    return data.decode("utf-8", "surrogateescape").translate(_LATIN_1)


def plain(text: str) -> str:
    """Return text without colours and cursor movements."""
    return _ESCAPE.sub("", text)


def printable(line: str) -> str:
    """Return a console line as a sentence may quote it: one line, whatever noise is in it."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", plain(line))


class Unfinished(str):
    """The start of a line, at a pause of the board. The whole line is read once its end has come."""

    __slots__ = ()


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
    """Lines of a console."""

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
        self._paused = 0  # bytes of the line that is coming in, as it was returned at a pause
        self._by_return = False  # the line before ended with CR; its LF may follow
        self._secrets: set[str] = set()
        self._dumped = -1  # lines of the core dump that is coming in; below 0 where none is
        self._last: list[str] = []
        self.came_s = 0.0  # when the latest byte came
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

    def masked_start(self, text: str) -> str:
        """Mask also the start of a secret, with which the start of a line may end."""
        text = self.masked(text)
        for cut in range(len(text), SECRET_CHARACTERS_MIN - 1, -1):
            if any(secret.startswith(text[-cut:]) for secret in self._secrets):
                return text[:-cut] + MASK
        return text

    def write(self, command: bytes, *, shown: str = "") -> None:
        """Write a command line; ``shown`` stands for it in the log where it carries a secret."""
        self._log("> " + self.masked(shown or command.decode("ascii", "replace").strip()))
        self._console.write(command)

    @property
    def has_line(self) -> bool:
        """Whether a whole line has arrived that was not read yet."""
        return self._end() is not None

    @property
    def unfinished(self) -> str:
        """What has arrived of a line that has not ended."""
        return plain(text_of(self._buffer.rstrip(b"\r")))

    @property
    def last(self) -> list[str]:
        """The latest lines as error sentences quote them, the unfinished line included."""
        start = self.masked_start(self.unfinished) if self._dumped < 0 else ""
        return [*self._last, printable(start)] if start else list(self._last)

    def read(self, deadline: float, *, pause_s: float = math.inf) -> str | None:
        """Return the next line without its end, or None when none is complete by ``deadline``.

        With ``pause_s`` return the Unfinished line, too, once nothing more of it has come for so long.
        """
        while (end := self._end()) is None:
            pause_at = self.came_s + pause_s if len(self._buffer) > self._paused else math.inf
            now = self._clock()
            if now >= pause_at:
                self._paused = len(self._buffer)
                if text := self.unfinished:
                    return Unfinished(text)
                continue
            if chunk := self._console.read(max(0.0, min(deadline, pause_at) - now)):
                self.came_s = self._clock()
                self._buffer += chunk
                self.bytes_received += len(chunk)
            if now >= deadline and not self.has_line:
                return None
        return self._take(*end)

    def close(self) -> None:
        """Log what has arrived and was not read, an unfinished line as it is."""
        while (end := self._end()) is not None:
            self._take(*end)
        if self.unfinished:
            self._take(len(self._buffer), len(self._buffer), mask=self.masked_start)

    def _end(self) -> tuple[int, int] | None:
        """Return the end of the next line's text and the begin of the line after it, None for no line."""
        if self._by_return and (rest := _AFTER_RETURN.match(self._buffer)):
            del self._buffer[: rest.end()]
            self._by_return = False
        if returns := _RETURNS.match(self._buffer):
            del self._buffer[: returns.end()]
        if found := _END.search(self._buffer):
            return found.span()
        # a wrong baud rate has no line ends
        return (LINE_BYTES_MAX, LINE_BYTES_MAX) if len(self._buffer) > LINE_BYTES_MAX else None

    def _take(self, end: int, following: int, *, mask: Callable[[str], str] | None = None) -> str:
        self._by_return = self._buffer[end:following].endswith(b"\r")
        coloured = text_of(self._buffer[:end])
        line = plain(coloured)
        del self._buffer[:following]
        self._paused = 0
        if self._is_dump(line):
            return line
        shown = (mask or self.masked)(line)
        self._log(coloured if shown == line else shown)
        self._last = [*self._last[-19:], printable(shown)]
        return line

    def _is_dump(self, line: str) -> bool:
        """Return whether a line is memory, which no log takes: what is secret in it cannot be masked."""
        if self._dumped >= 0 and is_dump_line(line):
            self._dumped += 1
            return True
        if self._dumped >= 0:
            self._log(f"({self._dumped} lines of a core dump)")
        self._dumped = 0 if DUMP_BEGINS in line else -1
        return False


def is_dump_line(line: str) -> bool:
    """Return whether a line between a core dump's begin and end is of the dump itself: base64."""
    return _BASE64.fullmatch(line.strip()) is not None


def _discard(line: str) -> None:
    del line
