# SPDX-License-Identifier: Apache-2.0
"""Detect a product's restart by its console lines, if the ROM's line was not read.

The ROM prints at 115200 baud whatever the console's rate is, and an eFuse silences it. What is left are the
lines of the second-stage bootloader and of ESP-IDF's start-up, the product's ready line, and the time in its
log lines. docs/reference/probes.md states the rules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Protocol

from hil.probe.probe_file import Pattern
from hil.session.console import plain
from hil.session.trouble import AFTER_ANYTHING, CHARACTERS_MAX, is_of_rom

# Lines that a boot prints once, in their order. ESP-IDF v5.5: bootloader_init.c, cpu_start.c,
# startup_funcs.c, esp_app_desc.c, app_startup.c
_BOOT_LINES = tuple(
    re.compile(rf"{AFTER_ANYTHING}[EWID] (?:\([^)]*\) )?{words}")
    for words in (
        r"boot: ESP-IDF \S+ 2nd stage bootloader",
        r"cpu_start: (Multi|Uni)core app",
        r"cpu_start: Pro cpu start user code",
        r"app_init: Application information:",
        r"main_task: Calling app_main\(\)",
    )
)
_READY = len(_BOOT_LINES)
_NOISE = re.compile(r"[^ -~]+")
# Milliseconds since the boot as ESP_LOG prints them, or seconds in brackets. A time of day is neither, for
# SNTP sets it.
_STAMP = re.compile(r"[EWIDV] \((?P<ms>\d{1,10})\) |\[ *(?P<s>\d{1,7})\.(?P<s_ms>\d{3})\]")

_MS = 1_000_000
_STAMPS_WRAP_MS = 2**32
_SLACK_MS = 50  # a line reaches the host late by less
_SLACK_SHARE = 0.1
_TRUSTED_LINES, _TRUSTED_MS = 10, 1000  # so long a log's time has to keep to the host's clock
_BEGUN_LINES, _BEGUN_MS = 3, 100  # and so long after it began again


class TimedLine(Protocol):
    """hil.probe.console.ConsoleLine"""

    @property
    def time_ns(self) -> int: ...
    @property
    def text(self) -> str: ...


@dataclass
class Stamps:
    """Log times that keep to the host's clock since ``first``: (ms of the log, ms of the host)."""

    first: tuple[int, float]
    last: tuple[int, float]
    count: int = 1

    @classmethod
    def of(cls, stamp_ms: int, host_ms: float) -> Stamps:
        return cls((stamp_ms, host_ms), (stamp_ms, host_ms))

    def take(self, stamp_ms: int, host_ms: float) -> bool:
        """Take a time that keeps to the clock; return whether it does."""
        passed_ms = host_ms - self.first[1]
        expected_ms = (self.first[0] + passed_ms) % _STAMPS_WRAP_MS
        if abs(stamp_ms - expected_ms) > _SLACK_MS + _SLACK_SHARE * passed_ms:
            return False
        self.last = (stamp_ms, host_ms)
        self.count += 1
        return True

    def lasts(self, lines: int, for_ms: float) -> bool:
        return self.count >= lines and self.last[1] - self.first[1] >= for_ms


@dataclass
class LogClock:
    """The time in a product's log lines, which counts once it kept to the host's clock for a while."""

    _now: Stamps | None = None
    _begun: Stamps | None = None  # what may be the time since another boot

    @property
    def is_trusted(self) -> bool:
        return self._now is not None and self._begun is None and self._now.lasts(_TRUSTED_LINES, _TRUSTED_MS)

    def began_again(self, line: TimedLine) -> bool:
        """Take a line; return whether the time began again, which three lines have to show."""
        if (stamp_ms := stamp_of(line.text)) is None:
            return False
        host_ms = line.time_ns / _MS
        if self._now is None or self._now.take(stamp_ms, host_ms):
            self._now = self._now or Stamps.of(stamp_ms, host_ms)
            self._begun = None
            return False
        if not self._now.lasts(_TRUSTED_LINES, _TRUSTED_MS):
            self._now = Stamps.of(stamp_ms, host_ms)
            return False
        return self._may_have_begun(self._now, stamp_ms, host_ms)

    def _may_have_begun(self, before: Stamps, stamp_ms: int, host_ms: float) -> bool:
        """Return whether a boot since the last line of the boot before explains the times.

        A light sleep does not: the log's time stands still in it, and goes on.
        """
        if self._begun is None or not self._begun.take(stamp_ms, host_ms):
            fits = stamp_ms <= min(before.last[0], host_ms - before.last[1] + _SLACK_MS)
            self._begun = Stamps.of(stamp_ms, host_ms) if fits else None
            return False
        if not self._begun.lasts(_BEGUN_LINES, _BEGUN_MS):
            return False
        self._now, self._begun = self._begun, None
        return True


def stamp_of(text: str) -> int | None:
    """Return the milliseconds since the boot that a log line begins with, None where it tells none."""
    found = _STAMP.match(without_noise(text))
    if found is None:
        return None
    return int(found["ms"]) if found["ms"] else int(found["s"]) * 1000 + int(found["s_ms"])


def without_noise(text: str) -> str:
    """Return a line without colours, and without what a ROM at another baud rate left before it."""
    text = plain(text)
    return text if _STAMP.match(text) else _NOISE.split(text[-CHARACTERS_MAX:])[-1]


@dataclass
class RestartWatch:
    """One product's boots. ``take`` each line; once the product is ready, name its ready line."""

    _stage: int = -1  # the last of a boot's lines that came
    _clock: LogClock = field(default_factory=LogClock)
    _ready: Pattern | None = None
    _ready_line: TimedLine | None = None
    _boot_ns: int = 0  # from the boot's first line to the ready line
    _is_once: bool = True  # the ready line comes once a boot

    def ready(self, pattern: Pattern | None, line: TimedLine, first_ns: int) -> None:
        """Take ``line`` for the ready line of a boot whose first line came at ``first_ns``.

        ``pattern`` is None where it is a prompt, which comes after each command, too.
        """
        self._ready, self._ready_line, self._stage = pattern, line, _READY
        self._boot_ns = line.time_ns - first_ns

    def take(self, line: TimedLine) -> str:
        """Return the sign of a restart in a line of the product; "" if there is none."""
        if is_of_rom(line.text):  # whoever reads the ROM's lines knows of it
            self._stage, self._clock = -1, LogClock()
            return ""
        clock_began = self._clock.began_again(line)
        stage = self._stage_of(line)
        if stage == _READY:
            return self._again_ready(line)
        if stage is not None:
            began, self._stage = stage <= self._stage, stage
            return self._began("a line that a boot begins with came again") if began else ""
        if clock_began and self._stage == _READY:
            self._stage = _READY - 1
            return "the time in its log began again"
        return ""

    def _stage_of(self, line: TimedLine) -> int | None:
        if self._ready and self._ready.search(line.text):
            return _READY
        text = plain(line.text)
        start = max(0, len(text) - CHARACTERS_MAX)
        return next((stage for stage, mark in enumerate(_BOOT_LINES) if mark.search(text, start)), None)

    def _again_ready(self, line: TimedLine) -> str:
        before, self._ready_line = self._ready_line, line
        if self._stage < _READY or before is None:
            self._stage = _READY
            return ""
        # a boot that took a second is not over again after a tenth: this line is of another kind
        self._is_once &= 2 * (line.time_ns - before.time_ns) >= self._boot_ns
        if not self._is_once or self._clock.is_trusted or _runs_on(before, line):
            return ""
        return self._began("its ready line came again")

    def _began(self, why: str) -> str:
        self._clock = LogClock()
        return why


def _runs_on(before: TimedLine, line: TimedLine) -> bool:
    """Return whether the time in two lines went on as the host's clock did."""
    old, new = stamp_of(before.text), stamp_of(line.text)
    if old is None or new is None or new <= old:
        return False
    return Stamps.of(old, before.time_ns / _MS).take(new, line.time_ns / _MS)
