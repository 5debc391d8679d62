# SPDX-License-Identifier: Apache-2.0
"""What a crash prints, in ESP-IDF's words (``esp_system/panic.c``, ``panic_arch.c``, ``task_wdt.c``)."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from hil.virtual.board.chip import VirtualChip
from hil.virtual.board.reset import (
    BROWNOUT,
    INTERRUPT_WATCHDOG,
    PANIC,
    SOFTWARE,
    TASK_WATCHDOG,
    Reset,
)

# esp_system_abort()'s details: FreeRTOS-Kernel/portable/*/port.c, heap/heap_caps.c
_ABORTS = {
    True: "abort() was called at PC 0x00000000 on core 0",
    "stack-overflow": "***ERROR*** A stack overflow in task main has been detected.",
    "out-of-memory": "Memory allocation failed",
}
# by which a program's own watchdogs end it (firmware/host/idf/system/panic.h)
_WATCHDOGS = {signal.SIGXCPU: INTERRUPT_WATCHDOG, signal.SIGVTALRM: TASK_WATCHDOG}


@dataclass(frozen=True)
class PanicText:
    """Text for the console and the reset that follows."""

    text: str
    reset: Reset


def from_exit(chip: VirtualChip, status: int, elf_sha256: bytes, uptime_ms: int) -> PanicText:
    """Turn the application's exit status (negative: a signal) into what a chip would have done.

    0 is ``esp_restart()``; another status (a sanitizer, a program that cannot be loaded) is an abort.
    """
    if status == 0:
        return PanicText("", SOFTWARE)
    if status > 0:
        note = f"E ({uptime_ms}) vboard: the application exited with status {status}\r\n"
        return PanicText(note + _abort(chip, elf_sha256), PANIC)
    if -status == signal.SIGABRT:
        return abort(chip, elf_sha256)
    if -status in _WATCHDOGS:  # the program has said what it was
        return PanicText("", _WATCHDOGS[signal.Signals(-status)])
    return exception(chip, chip.architecture.exception_of(signal.Signals(-status)), elf_sha256)


def exception(chip: VirtualChip, cause: str, elf_sha256: bytes) -> PanicText:
    """An exception, in the words of the chip's architecture."""
    head = f"\r\nGuru Meditation Error: Core  0 panic'ed ({cause}). Exception was unhandled.\r\n\r\n"
    return PanicText(head + chip.architecture.dump() + _tail(chip, elf_sha256), PANIC)


def abort(chip: VirtualChip, elf_sha256: bytes, by: str | bool = True) -> PanicText:
    """A call of ``abort()``, by the app or by what ``faults.ABORTS`` names."""
    return PanicText(_abort(chip, elf_sha256, _ABORTS[by]), PANIC)


def watchdog(chip: VirtualChip, which: str, elf_sha256: bytes, uptime_ms: int) -> PanicText:
    """The task watchdog (configured to panic) or the interrupt watchdog."""
    if which == "interrupt":
        head = "\r\nGuru Meditation Error: Core  0 panic'ed (Interrupt wdt timeout on CPU0). \r\n\r\n"
        return PanicText(head + chip.architecture.dump() + _tail(chip, elf_sha256), INTERRUPT_WATCHDOG)
    single = chip.cores == 1
    lines = (
        "Task watchdog got triggered. The following tasks/users did not reset the watchdog in time:",
        f" - {'IDLE' if single else 'IDLE0'} (CPU 0)",
        "Tasks currently running:",
        "CPU 0: main",
        *(() if single else ("CPU 1: IDLE1",)),
        "Aborting.",
    )
    log = "".join(f"E ({uptime_ms}) task_wdt: {line}\r\n" for line in lines)
    return PanicText(log + _abort(chip, elf_sha256), TASK_WATCHDOG)


def brownout() -> PanicText:
    """The brownout detector's interrupt: one line, and the system restarts."""
    return PanicText("\r\nE BOD: Brownout detector was triggered\r\n\r\n\r\n", BROWNOUT)


def _abort(chip: VirtualChip, elf_sha256: bytes, details: str = _ABORTS[True]) -> str:
    dump = chip.architecture.dump() if chip.architecture.dumps_on_abort else ""
    return f"\r\n{details}\r\n{dump}{_tail(chip, elf_sha256)}"


def _tail(chip: VirtualChip, elf_sha256: bytes) -> str:
    elf = f"ELF file SHA256: {elf_sha256.hex()[:9]}"
    return f"{chip.architecture.trace}\r\n\r\n\r\n\r\n{elf}\r\n\r\nRebooting...\r\n"
