# SPDX-License-Identifier: Apache-2.0
"""Texts by which ESP-IDF says that a board is in trouble, and whose fault each is.

Sources: ESP-IDF v5.5 ``esp_system/panic.c``, ``port/panic_handler.c``, ``newlib/assert.c``,
``esp_system/port/brownout.c``, ``task_wdt/task_wdt.c``; the ROM prints the ``rst:`` line, whose names are
those of ``esp_rom/<chip>/include/<chip>/rom/rtc.h``. An ESP32 tells a pulse on EN from a power loss neither
there nor in ``esp_reset_reason()``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hil.base.errors import FirmwareError, HilError, RigError
from hil.session.console import DUMP_BEGINS, DUMP_ENDS, printable


@dataclass(frozen=True)
class Trouble:
    """What a console line gives away."""

    name: str
    error: type[HilError]
    next_step: str


@dataclass(frozen=True)
class Decoded:
    """What a panic's addresses are in its build: ``where``, "" where that is not known, and the way out."""

    where: str
    next_step: str


QUIET_S = 0.5  # a panic's output has ended when nothing came for this long
SAVING_S = 15.0  # the same while a core dump is on its way: a flash is erased before it is written
LINES_MAX = 120  # of an incident; those of a core dump do not count
DUMP_LINES_MAX = 40_000  # 48 bytes each
# while a chip saves its memory, and after: ESP-IDF v5.5, espcoredump/src/core_dump_{flash,uart}.c
_SAVING = re.compile(r"Save core dump to flash|Print core dump to uart")
_SAVED = re.compile(r"Core dump has been (saved|written)|[Cc]ore dump write failed|Not enough space to save")


@dataclass
class Incident:
    """The lines of something that went wrong, as they come: to the restart, or until nothing comes any more.

    A core dump that the chip prints or saves on the way belongs to it.
    """

    lines: list[str] = field(default_factory=list)
    _others: int = 0  # lines that are no memory
    _in_dump: bool = False
    _is_saving: bool = False

    def add(self, line: str) -> None:
        self.lines.append(line)
        if DUMP_BEGINS in line or DUMP_ENDS in line:
            self._in_dump = DUMP_BEGINS in line
        if _SAVING.search(line) or _SAVED.search(line):
            self._is_saving = _SAVED.search(line) is None
        self._others += not self._in_dump

    @property
    def is_over(self) -> bool:
        return (
            self._others >= LINES_MAX
            or len(self.lines) >= DUMP_LINES_MAX
            or (bool(self.lines) and is_last_line(self.lines[-1]))
        )

    @property
    def patience_s(self) -> float:
        """How long the next line may take to come."""
        return SAVING_S if self._in_dump or self._is_saving else QUIET_S

    def finish(self, read: Callable[[float], str | None]) -> list[str]:
        """Read on to the end, by what returns the next line or None within so many seconds; return all."""
        while not self.is_over and (line := read(self.patience_s)) is not None:
            self.add(line)
        return self.lines


Decode = Callable[[Sequence[str]], Decoded | None]  # of an incident's lines; None: they hold no address


_DECODE = "decode the backtrace with the ELF of this build (addr2line), or read the console log."
_DECODE_REGISTERS = (
    "decode MEPC and RA with the ELF of this build (riscv32-esp-elf-addr2line): a RISC-V chip prints no "
    "backtrace; or read the console log."
)
_READ_LOG = "read the console log, and decode the addresses in it with the ELF of this build (addr2line)."
_POWER = "check the board's supply and cable; a brownout is not the firmware's doing."
_OUTSIDE = (
    "check cable, hub and supply, and that no other program opens the port: it would toggle DTR and RTS."
)

PANIC = Trouble("panicked", FirmwareError, _DECODE)
ABORT = Trouble("called abort()", FirmwareError, _DECODE)
ASSERT = Trouble("failed an assertion", FirmwareError, _DECODE)
STACK = Trouble("overflowed a stack", FirmwareError, _DECODE)
HEAP = Trouble("corrupted its heap", FirmwareError, _DECODE)
EXHAUSTED = Trouble("ran out of heap", FirmwareError, _DECODE)
WATCHDOG = Trouble("tripped the task watchdog", FirmwareError, "look for a task that does not yield.")
BROWNOUT = Trouble("browned out", RigError, _POWER)
POWER_LOSS = Trouble("lost its power or was reset from outside", RigError, _OUTSIDE)
RESET = Trouble("was reset", FirmwareError, "look for what reset the board; the ROM's line names the cause.")

_PATTERNS: Sequence[tuple[re.Pattern[str], Trouble]] = (
    (re.compile(r"Guru Meditation Error: Core\s+\d+ panic'ed|Guru Meditation Error"), PANIC),
    (re.compile(r"assert failed: "), ASSERT),
    (re.compile(r"\bA stack overflow in task \S+ has been detected"), STACK),
    (re.compile(r"Stack smashing protect failure!"), STACK),
    (re.compile(r"CORRUPT HEAP: "), HEAP),
    # CONFIG_HEAP_ABORT_WHEN_ALLOCATION_FAILS; a line by itself, for firmware logs such words, too
    (re.compile(r"^Memory allocation failed\s*$"), EXHAUSTED),
    (re.compile(r"abort\(\) was called at PC 0x"), ABORT),
    (re.compile(r"task_wdt: Task watchdog got triggered"), WATCHDOG),
    (re.compile(r"Brownout detector was triggered"), BROWNOUT),
    (re.compile(r"\brst:0x[0-9a-f]+ \(\w*BROWN_?OUT"), BROWNOUT),
    (re.compile(r"\brst:0x[0-9a-f]+ \((POWERON|USB_|POWER_GLITCH|GLITCH)"), POWER_LOSS),
    (re.compile(r"\brst:0x[0-9a-f]+ \("), RESET),
    (re.compile(r"^Rebooting\.\.\."), RESET),
)
# ``esp_reset_reason()`` as a hello names it
_BY_REASON = {"BROWNOUT": BROWNOUT, "POWERON": POWER_LOSS, "EXT": POWER_LOSS}
# The last lines of an incident: nothing of interest follows.
_LAST = re.compile(r"^Rebooting\.\.\.|\brst:0x[0-9a-f]+ \(|Brownout detector was triggered")
_TRACE = re.compile(r"Backtrace:|^MEPC")
_WORTH_QUOTING = re.compile(r"Backtrace:|Core\s+\d+ register dump|^Setting breakpoint|^MEPC|^PC ")


def recognise(line: str) -> Trouble | None:
    """Return the trouble that a line of log text tells of."""
    return next((trouble for pattern, trouble in _PATTERNS if pattern.search(line)), None)


def is_trace(line: str) -> bool:
    """Return whether a line of a panic names an address to decode."""
    return _TRACE.search(line) is not None


def next_step(trouble: Trouble, lines: Sequence[str]) -> str:
    """Return the way out of ``trouble``, given an incident's lines: each architecture's panic has its own."""
    if trouble.next_step != _DECODE or any("Backtrace:" in line for line in lines):
        return trouble.next_step
    return _DECODE_REGISTERS if any(map(is_trace, lines)) else _READ_LOG


def is_worth_decoding(trouble: Trouble) -> bool:
    """Return whether it is the program that went wrong: a brownout's or a reset's addresses tell nothing."""
    return trouble.error is FirmwareError and trouble is not RESET


def describe(
    trouble: Trouble, lines: Sequence[str], panic: Sequence[str], decode: Decode | None
) -> tuple[str, str]:
    """Return the place in the program where it is known, an incident's telling lines, and the way out.

    ``panic`` is what there is to decode: of a boot more than the ``lines``.
    """
    decoded = decode(panic) if decode and is_worth_decoding(trouble) else None
    if decoded is None:
        return excerpt(lines), next_step(trouble, lines)
    steps = (
        [decoded.next_step]
        if trouble.next_step == _DECODE
        else [trouble.next_step.rstrip("."), decoded.next_step]
    )
    return " | ".join(filter(None, (decoded.where, excerpt(lines)))), "; ".join(steps)


def by_reset_reason(reason: str) -> Trouble:
    """Return the trouble behind a boot that nobody asked for."""
    return _BY_REASON.get(reason, RESET)


def is_last_line(line: str) -> bool:
    return _LAST.search(line) is not None


def excerpt(lines: Sequence[str], limit: int = 6) -> str:
    """Quote the lines of an incident that say most."""
    telling = [line for line in lines if recognise(line) or _WORTH_QUOTING.search(line)]
    return " | ".join(printable(line.strip()) for line in (telling or lines)[:limit])


def worst(lines: Sequence[str]) -> Trouble:
    """Return the trouble of an incident: a named cause goes before the reset that follows it."""
    found = [trouble for trouble in map(recognise, lines) if trouble is not None]
    causes = [trouble for trouble in found if trouble not in (RESET, POWER_LOSS)]
    return (causes or found or [RESET])[0]
