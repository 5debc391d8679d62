# SPDX-License-Identifier: Apache-2.0
"""Texts by which a chip says that it is in trouble, and whose fault each is.

Sources: ESP-IDF v5.5.4, ``esp_system/panic.c``, ``esp_err.c``, ``ubsan.c``, ``stack_check.c``, ``task_wdt``,
``newlib/src/assert.c``, ``esp_hw_support/power_supply/brownout.c``, ``heap/``, ``freertos/*/port.c``,
``bootloader_support/src/``, ``spi_flash/``; the ROM prints ``rst:``, ``invalid header``, ``Invalid image
block`` and ``flash read err``.

A text counts where it is printed, not where a log line quotes it. ``abort()`` and the ROM begin a line. The
others may follow what had no line end: a prompt, dots, half a line of the other core.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hil.base.errors import ConfigError, FirmwareError, HilError, NoAnswerError, RigError
from hil.session.console import DUMP_BEGINS, DUMP_ENDS, printable
from hil.session.reset_causes import Cause, cause_of


@dataclass(frozen=True)
class Trouble:
    """What a console line gives away. ``is_of_boot``: a program that runs may print such a line, too."""

    name: str
    error: type[HilError]
    next_step: str
    is_of_boot: bool = False


@dataclass(frozen=True)
class Decoded:
    """What a panic's addresses are in its build: ``where``, "" where that is not known, and the way out."""

    where: str
    next_step: str


QUIET_S = 0.5  # a panic's output has ended when nothing came for this long
SAVING_S = 15.0  # the same while a core dump is on its way: a flash is erased before it is written
BOOT_RESETS = 2  # resets from outside that a boot may show: opening the port makes one, our reset another
BOOT_LINES_MAX = 6  # of trouble; a board that resets this often before it is up does not come up
CHARACTERS_MAX = 1000  # of a line of trouble: what is before them had no line end
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


@dataclass
class Booting:
    """What goes wrong between a reset of ours and the line by which a board says that it is up."""

    lines: list[str] = field(default_factory=list)
    _resets: int = 0  # from outside
    _is_crashing: bool = False

    def add(self, kind: Trouble, line: str) -> None:
        """Take a line of trouble, unless it is how every boot begins. Of a crash the first line counts."""
        was_crashing, self._is_crashing = self._is_crashing, is_worth_decoding(kind)
        if kind in (POWER_LOSS, GLITCH) and self._resets < BOOT_RESETS:
            self._resets += 1
        elif not (was_crashing and self._is_crashing):
            self.lines.append(line.strip())

    @property
    def is_loop(self) -> bool:
        return len(self.lines) >= BOOT_LINES_MAX


Decode = Callable[[Sequence[str]], Decoded | None]  # of an incident's lines; None: they hold no address


_DECODE = "decode the backtrace with the ELF of this build (addr2line), or read the console log."
_DECODE_REGISTERS = (
    "decode MEPC and RA with the ELF of this build (riscv32-esp-elf-addr2line): a RISC-V chip prints no "
    "backtrace; or read the console log."
)
_READ_LOG = "read the console log, and decode the addresses in it with the ELF of this build (addr2line)."
_SLEEP = "a product that sleeps by design counts it: on_restart: count in its probe."
_FLASH = (
    "flash it (hil board flash); if it stays so, compare the build's flash size and offsets with the board's."
)
_MEMORY = "build it for the flash and PSRAM of this board (CONFIG_ESPTOOLPY_FLASHSIZE, CONFIG_SPIRAM)."
_CHIP = "build it for this board's chip and revision, with an ESP-IDF that knows that revision."
_SIGN = "sign it with a key that the board's eFuses know: [flash] in hil.toml names the command for it."
_BOOT_PIN = "reset it with its boot pin high (IO0, IO9 of most RISC-V chips); hil board power does so."
_STRAPS = "check the board's supply, its flash, and what pulls its strapping pins (IO12 of an ESP32)."
_POWER = "check the board's supply and cable; a brownout is not the firmware's doing."
_OUTSIDE = (
    "check cable, hub and supply, and that no other program opens the port: it would toggle DTR and RTS."
)

PANIC = Trouble("panicked", FirmwareError, _DECODE)
ABORT = Trouble("called abort()", FirmwareError, _DECODE)
CHECK = Trouble("failed an ESP_ERROR_CHECK", FirmwareError, _DECODE)
ASSERT = Trouble("failed an assertion", FirmwareError, _DECODE)
STACK = Trouble("overflowed a stack", FirmwareError, _DECODE)
HEAP = Trouble("corrupted its heap", FirmwareError, _DECODE)
EXHAUSTED = Trouble("ran out of heap", FirmwareError, _DECODE)
WATCHDOG = Trouble("tripped the task watchdog", FirmwareError, "look for a task that does not yield.")
BROWNOUT = Trouble("browned out", RigError, _POWER)
GLITCH = Trouble("met a glitch of its supply or clock", RigError, _POWER)
POWER_LOSS = Trouble("lost its power or was reset from outside", RigError, _OUTSIDE)
WOKE = Trouble("woke from deep sleep", FirmwareError, _SLEEP)
DOWNLOAD = Trouble("is in download mode", NoAnswerError, _BOOT_PIN, is_of_boot=True)
RESET = Trouble("was reset", FirmwareError, "look for what reset the board; the ROM's line names the cause.")
NO_PROGRAM = Trouble("holds no bootable image in its flash", NoAnswerError, _FLASH, is_of_boot=True)
OTHER_CHIP = Trouble("refuses an image of another chip or revision", ConfigError, _CHIP, is_of_boot=True)
UNSIGNED = Trouble("refuses an image by its signature", ConfigError, _SIGN, is_of_boot=True)
LESS_MEMORY = Trouble("lacks memory that its build expects", ConfigError, _MEMORY, is_of_boot=True)
UNREADABLE = Trouble("cannot read its flash", NoAnswerError, _STRAPS, is_of_boot=True)

_BY_CAUSE: Mapping[Cause, Trouble] = {
    "outside": POWER_LOSS,
    "glitch": GLITCH,
    "brownout": BROWNOUT,
    "sleep": WOKE,
    "program": RESET,
}
_RESETS = (RESET, POWER_LOSS, GLITCH, WOKE, DOWNLOAD)
ENDS_BOOT = (BROWNOUT, LESS_MEMORY)  # and whatever is worth decoding
# the start of a line, or what had no line end: a letter, or a prompt or dots, which a log line does not have
AFTER = r"(?:^|(?<=[\w.%])|^(?![EWIDV] ).*(?:[>#$]|\.\.) ?)"
# and what the ROM's 115200 baud left of the line before, at another rate
AFTER_ANYTHING = rf"(?:{AFTER}|[^ -~][!-~]{{0,4}})"
_RST = re.compile(rf"(?:^|{AFTER_ANYTHING}(?=rst:\w+ \(\w*\),boot:0x))rst:0x([0-9a-fA-F]+) \((\w*)")
_TIME = r"(?:\([\d:.]+\) )?"  # a log line has it, one of an interrupt has not
_PATTERNS: Sequence[tuple[re.Pattern[str], Trouble]] = (
    (re.compile(AFTER + r"Guru Meditation Error: "), PANIC),
    (re.compile(r"^Core\s+\d+ register dump:"), PANIC),  # whatever became of the line before
    (re.compile(r"^Panic handler entered multiple times"), PANIC),
    (re.compile(AFTER + r"ESP_ERROR_CHECK failed: esp_err_t 0x"), CHECK),
    (re.compile(r"^(assert failed: |Assert failed in )"), ASSERT),
    (re.compile(r"^\*\*\*ERROR\*\*\* A stack overflow in task .* has been detected"), STACK),
    (re.compile(r"^Stack smashing protect failure!"), STACK),
    (re.compile(AFTER + r"CORRUPT HEAP: "), HEAP),
    # CONFIG_HEAP_ABORT_WHEN_ALLOCATION_FAILS: the second on a chip, the first on ESP-IDF's target linux
    (re.compile(r"^(Memory allocation failed\s*$|Mem alloc fail\. size 0x)"), EXHAUSTED),
    (re.compile(r"^(abort\(\) was called at PC 0x|terminate called |Undefined behavior of type )"), ABORT),
    (re.compile(AFTER + rf"E {_TIME}task_wdt: Task watchdog got triggered"), WATCHDOG),
    # since v5.2 as a log line of its own kind, by its level; before v5.2 plain
    (re.compile(AFTER + r"[EI] BOD: Brownout detector was triggered"), BROWNOUT),
    (re.compile(r"^Brownout detector was triggered"), BROWNOUT),
    (re.compile(r"^(invalid header: 0x[0-9a-f]{1,8}\s*$|csum err:0x|ets_loader\.c \d)"), NO_PROGRAM),
    (re.compile(r"^Invalid image block, can't boot"), NO_PROGRAM),
    (re.compile(rf"^E {_TIME}flash_parts: partition \d+ invalid"), NO_PROGRAM),
    (re.compile(rf"^E {_TIME}boot_comm: (Image requires |mismatch chip |can't run on )"), OTHER_CHIP),
    (re.compile(rf"^E {_TIME}(secure_boot\w*|esp_image): Secure boot .*verification failed", re.I), UNSIGNED),
    (re.compile(r"^(Signature Check Failed|No signature block magic byte found)", re.I), UNSIGNED),
    (re.compile(rf"^E {_TIME}spi_flash: Detected size\(\d+k\) smaller than "), LESS_MEMORY),
    (re.compile(rf"^E {_TIME}cpu_start: Failed to init external RAM!"), LESS_MEMORY),
    (re.compile(rf"^E {_TIME}boot: (No bootable \w+ partition|load partition table error)"), NO_PROGRAM),
    (re.compile(rf"^E {_TIME}\w+: failed to load bootloader image header"), NO_PROGRAM),
    (re.compile(rf"^E {_TIME}esp_image: (Image hash failed|Checksum failed|image at 0x)"), NO_PROGRAM),
    (re.compile(r"^waiting for download"), DOWNLOAD),
    (re.compile(r"^flash read err, \d"), UNREADABLE),
    (re.compile(r"^Rebooting\.\.\."), RESET),
)
# ``esp_reset_reason()`` as a hello names it
_BY_REASON = {
    "BROWNOUT": BROWNOUT,
    "DEEPSLEEP": WOKE,
    **dict.fromkeys(("POWERON", "EXT", "SDIO", "USB", "JTAG"), POWER_LOSS),
    **dict.fromkeys(("EFUSE", "PWR_GLITCH"), GLITCH),
}
# The last lines of an incident: nothing of interest follows.
_LAST = re.compile(r"^Rebooting\.\.\.|^CPU halted\.|^rst:0x[0-9a-f]+ \(|\bBrownout detector was triggered")
_TRACE = re.compile(r"Backtrace:|^MEPC")
_WORTH_QUOTING = re.compile(
    r"Backtrace:|Core\s+\d+ register dump|^Setting breakpoint|^MEPC|^PC "
    r"|^(file|func|expression): |^  what\(\): |^Debug exception reason: |^Detected in task "
    r"| task_wdt: ( - |CPU \d)"
)


def recognise(line: str) -> Trouble | None:
    """Return the trouble that a line of a console tells of."""
    if reset := _find_reset(line):
        return _BY_CAUSE[cause_of(int(reset[1], 16), reset[2])]
    start = max(0, len(line) - CHARACTERS_MAX)
    return next((trouble for pattern, trouble in _PATTERNS if pattern.search(line, start)), None)


def is_of_rom(line: str) -> bool:
    """Return whether a line is the ROM's that names the cause of a reset."""
    return _find_reset(line) is not None


def _find_reset(line: str) -> re.Match[str] | None:
    return _RST.search(line, max(0, len(line) - CHARACTERS_MAX))


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
    return trouble.error is FirmwareError and trouble not in (RESET, WOKE)


def describe(
    trouble: Trouble, lines: Sequence[str], panic: Sequence[str], decode: Decode | None
) -> tuple[str, str]:
    """Return the place in the program where it is known, an incident's telling lines, and the way out.

    ``panic`` is what there is to decode, and then to quote: of a boot more than the ``lines``.
    """
    lines = panic if panic and is_worth_decoding(trouble) else lines
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


def excerpt(lines: Sequence[str]) -> str:
    """Quote the lines of an incident that say most."""
    telling = [line for line in lines if recognise(line) or _WORTH_QUOTING.search(line)]
    once = dict.fromkeys(printable(line.strip()) for line in telling or lines)
    return " | ".join(list(once)[:6])


def worst(lines: Sequence[str]) -> Trouble:
    """Return the trouble of an incident: a named cause goes before the reset that follows it."""
    found = [trouble for trouble in map(recognise, lines) if trouble is not None]
    causes = [trouble for trouble in found if trouble not in _RESETS]
    return (causes or found or [RESET])[0]
