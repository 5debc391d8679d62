"""What a crash prints, in ESP-IDF's words (``esp_system/panic.c``, ``panic_arch.c``, ``task_wdt.c``).

The registers and the backtrace are zero: the host's would say nothing of an ESP32.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass

from hil.virtual.board.resets import (
    BROWNOUT,
    INTERRUPT_WATCHDOG,
    PANIC,
    SOFTWARE,
    TASK_WATCHDOG,
    Reset,
)

_CAUSES = {
    signal.SIGSEGV: "LoadProhibited",
    signal.SIGBUS: "LoadStoreAlignment",
    signal.SIGILL: "IllegalInstruction",
    signal.SIGFPE: "IntegerDivideByZero",
}
_REGISTERS = (
    *("PC", "PS", *(f"A{i}" for i in range(16))),
    *("SAR", "EXCCAUSE", "EXCVADDR", "LBEG", "LEND", "LCOUNT"),
)
_ABORT = "\r\nabort() was called at PC 0x00000000 on core 0\r\n"


@dataclass(frozen=True)
class Crash:
    """Text for the console and the reset that follows."""

    text: str
    reset: Reset


def from_exit(status: int, elf_sha256: bytes, uptime_ms: int) -> Crash:
    """Turn the application's exit status (negative: a signal) into what a chip would have done.

    0 is ``esp_restart()``; another status (a sanitizer, a program that cannot be loaded) is an abort.
    """
    if status == 0:
        return Crash("", SOFTWARE)
    if status > 0:
        note = f"E ({uptime_ms}) vboard: the application exited with status {status}\r\n"
        return Crash(note + _ABORT + _tail(elf_sha256), PANIC)
    if -status == signal.SIGABRT:
        return Crash(_ABORT + _tail(elf_sha256), PANIC)
    return exception(_CAUSES.get(signal.Signals(-status), "Unknown"), elf_sha256)


def exception(cause: str, elf_sha256: bytes) -> Crash:
    """An exception such as LoadProhibited."""
    head = f"\r\nGuru Meditation Error: Core  0 panic'ed ({cause}). Exception was unhandled.\r\n\r\n"
    return Crash(head + _registers() + _tail(elf_sha256), PANIC)


def abort(elf_sha256: bytes) -> Crash:
    """A call of ``abort()``."""
    return Crash(_ABORT + _tail(elf_sha256), PANIC)


def watchdog(which: str, elf_sha256: bytes, uptime_ms: int) -> Crash:
    """The task watchdog (configured to panic) or the interrupt watchdog."""
    if which == "interrupt":
        head = "\r\nGuru Meditation Error: Core  0 panic'ed (Interrupt wdt timeout on CPU0). \r\n\r\n"
        return Crash(head + _registers() + _tail(elf_sha256), INTERRUPT_WATCHDOG)
    lines = (
        "Task watchdog got triggered. The following tasks/users did not reset the watchdog in time:",
        " - IDLE0 (CPU 0)",
        "Tasks currently running:",
        "CPU 0: main",
        "CPU 1: IDLE1",
        "Aborting.",
    )
    log = "".join(f"E ({uptime_ms}) task_wdt: {line}\r\n" for line in lines)
    return Crash(log + _ABORT + _tail(elf_sha256), TASK_WATCHDOG)


def brownout() -> Crash:
    """The brownout detector's interrupt: one line, and the system restarts."""
    return Crash("\r\nE BOD: Brownout detector was triggered\r\n\r\n\r\n", BROWNOUT)


def _registers() -> str:
    rows = (_REGISTERS[at : at + 4] for at in range(0, len(_REGISTERS), 4))
    lines = ("  ".join(f"{name:<8}: 0x00000000" for name in row) for row in rows)
    return "Core  0 register dump:\r\n" + "\r\n".join(lines) + "\r\n"


def _tail(elf_sha256: bytes) -> str:
    return (
        "\r\n\r\nBacktrace: 0x00000000:0x00000000\r\n"
        f"\r\n\r\n\r\n\r\nELF file SHA256: {elf_sha256.hex()[:9]}\r\n\r\nRebooting...\r\n"
    )
