"""What a panic prints of a CPU: the names of its exceptions and registers, and its trace of calls.

Sources: ESP-IDF v5.5 ``esp_system/port/arch/{xtensa,riscv}/panic_arch.c`` and ``port/panic_handler.c``. All
values are zero: the host's would say nothing of the chip.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass

# How many bytes of the stack a RISC-V chip prints, and how many words a line holds.
_STACK_DUMP_BYTES = 1024
_STACK_LINE_WORDS = 8


@dataclass(frozen=True)
class Architecture:
    """``exceptions`` maps the names of the panic fault, which are Xtensa's, to this CPU's.

    ``dumps_on_abort``: registers come with ``abort()`` too, because the trace needs them.
    """

    exceptions: Mapping[str, str]
    registers: tuple[str, ...]
    trace: str
    dumps_on_abort: bool

    def exception_of(self, signal_number: signal.Signals) -> str:
        """Return the exception that stands for the signal which ended the host program."""
        return self.exceptions.get(_BY_SIGNAL.get(signal_number, ""), "Unknown")

    def dump(self) -> str:
        """Return the register dump of core 0."""
        rows = (self.registers[at : at + 4] for at in range(0, len(self.registers), 4))
        lines = ("".join(f"{name:<8}: 0x00000000  " for name in row) for row in rows)
        return "Core  0 register dump:\r\n" + "\r\n".join(lines) + "\r\n"


_BY_SIGNAL = {
    signal.SIGSEGV: "LoadProhibited",
    signal.SIGBUS: "LoadStoreAlignment",
    signal.SIGILL: "IllegalInstruction",
    signal.SIGFPE: "IntegerDivideByZero",
}
_XTENSA_EXCEPTIONS = (*_BY_SIGNAL.values(), "StoreProhibited", "InstrFetchProhibited")

XTENSA = Architecture(
    exceptions={name: name for name in _XTENSA_EXCEPTIONS},
    registers=(
        *("PC", "PS", *(f"A{i}" for i in range(16))),
        *("SAR", "EXCCAUSE", "EXCVADDR", "LBEG", "LEND", "LCOUNT"),
    ),
    trace="\r\n\r\nBacktrace: 0x00000000:0x00000000\r\n",
    dumps_on_abort=False,
)


def _stack_memory() -> str:
    line_bytes = 4 * _STACK_LINE_WORDS
    words = " ".join(["0x00000000"] * _STACK_LINE_WORDS)
    lines = (f"{at:08x}: {words}\r\n" for at in range(0, _STACK_DUMP_BYTES, line_bytes))
    return "\r\nStack memory:\r\n" + "".join(lines)


RISCV = Architecture(
    exceptions={
        "LoadProhibited": "Load access fault",
        "StoreProhibited": "Store access fault",
        "InstrFetchProhibited": "Instruction access fault",
        "LoadStoreAlignment": "Load address misaligned",
        "IllegalInstruction": "Illegal instruction",
        "IntegerDivideByZero": "Breakpoint",  # there is no such exception; the compiler puts an ebreak
    },
    registers=(
        *("MEPC", "RA", "SP", "GP", "TP", "T0", "T1", "T2", "S0/FP", "S1"),
        *(f"A{i}" for i in range(8)),
        *(f"S{i}" for i in range(2, 12)),
        *("T3", "T4", "T5", "T6", "MSTATUS", "MTVEC", "MCAUSE", "MTVAL", "MHARTID"),
    ),
    trace=_stack_memory(),
    dumps_on_abort=True,
)
