# SPDX-License-Identifier: Apache-2.0
"""What a chip answers to esptool and prints from its ROM, as data. One module per chip describes one.

What a panic prints of a CPU: the names of its exceptions and registers, and its trace of calls.

Sources: ESP-IDF v5.5 ``esp_system/port/arch/{xtensa,riscv}/panic_arch.c`` and ``port/panic_handler.c``. All
values are zero: the host's would say nothing of the chip.

How a serial client tells one chip from another.

Source: esptool 5.6.0, ``cmds.detect_chip`` and ``loader.get_security_info``: first command 0x14, whose answer
names the chip since the ESP32-C3, then a word of the ROM. Magic words of the newer chips: esptool 4.8.
"""

from __future__ import annotations

import signal
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hil.base.chips import CHIPS
from hil.virtual.board.reset import Cause

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


MAGIC_REGISTER = 0x40001000

_SECURITY = struct.Struct("<IB7B")
_CHIP = struct.Struct("<II")
# No flag set, nothing encrypted, no key in any block; the seventh purpose is as chips answer it.
_SECURITY_INFO = _SECURITY.pack(0, 0, 0, 0, 0, 0, 0, 0, 12)
_API_VERSION = 0


@dataclass(frozen=True)
class Detection:
    """``magic`` is the word at MAGIC_REGISTER; ``security_info`` is None where the command is unknown."""

    magic: int
    security_info: bytes | None = None


def _with_chip_id(magic: int, chip_id: int) -> Detection:
    return Detection(magic, _SECURITY_INFO + _CHIP.pack(chip_id, _API_VERSION))


DETECTIONS = {
    "esp8266": Detection(0xFFF0C101),
    "esp32": Detection(0x00F01D83),
    "esp32s2": Detection(0x000007C6, _SECURITY_INFO),
    "esp32s3": _with_chip_id(0x00000009, 9),
    "esp32c3": _with_chip_id(0x1B31506F, 5),
}


@dataclass(frozen=True)
class SpiRegisters:
    """The SPI flash controller's registers that esptool drives to send a raw flash command."""

    command: int
    start_bit: int
    user2: int
    data0: int


@dataclass(frozen=True)
class RtcWatchdog:
    """The RTC watchdog's registers; the two of its configuration are written only while ``protect`` holds
    ``key``."""

    config0: int
    config1: int
    enable_bit: int
    protect: int
    key: int


@dataclass(frozen=True)
class Rom:
    """What the ROM prints. ``flash_boot`` and ``download_boot`` follow ``boot:``, ``resets`` follow ``rst:``.

    ``chip_check`` is where the ROM refuses another chip's bootloader; empty: it does not look.
    """

    banner: str
    flash_boot: str
    download_boot: str
    resets: Mapping[Cause, str]
    spi_lines: tuple[str, ...]
    length_format: str = "#x"
    prints_saved_pc: bool = True
    chip_check: str = ""


@dataclass(frozen=True)
class Bootloader:
    """What the second stage prints of its chip; ``efuse_revision`` is empty where it does not say."""

    speed_label: str
    flash_mhz: int
    efuse_revision: str = ""


@dataclass(frozen=True)
class VirtualChip:
    """One chip: its register values, its ROM's texts and its memory map."""

    name: str
    image_chip_id: int
    revision: str
    architecture: Architecture
    detection: Detection
    rom: Rom
    bootloader: Bootloader
    crystal_hz: int
    uart_divider_register: int
    spi: SpiRegisters
    flash_jedec_id: int
    flash_bytes: int
    registers: Mapping[int, int]
    mac_registers: Callable[[bytes], Mapping[int, int]]
    mapped_ranges: tuple[tuple[int, int], ...]
    rtc_watchdog: RtcWatchdog | None = None

    @property
    def cores(self) -> int:
        return CHIPS[self.name].cores

    @property
    def bootloader_offset(self) -> int:
        return CHIPS[self.name].bootloader

    def is_mapped(self, address: int) -> bool:
        """Return whether the bootloader maps this address to flash instead of loading it to RAM."""
        return any(start <= address < end for start, end in self.mapped_ranges)


def mac_words(mac: bytes) -> tuple[int, int]:
    """Return the two words in which every chip's eFuses keep the MAC address: last four bytes, first two."""
    return int.from_bytes(mac[2:], "big"), int.from_bytes(mac[:2], "big")
