"""What the parts of the serial loader share: error codes, the wire, and what lies outside of the loader.

Source of the codes: esptool documentation, "Serial Protocol".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

ROM_INVALID_MESSAGE, ROM_FAILED, ROM_INVALID_CRC, ROM_DEFLATE_ERROR = 0x05, 0x06, 0x07, 0x0B
STUB_BAD_LENGTH, STUB_BAD_CHECKSUM, STUB_NOT_IN_FLASH_MODE = 0xC0, 0xC1, 0xC6
STUB_FAILED_FLASH, STUB_INFLATE_ERROR, STUB_NOT_IMPLEMENTED = 0xC4, 0xC7, 0xFF


class CommandError(Exception):
    """A command fails: the code that the ROM and the one that the stub answers."""

    def __init__(self, rom: int, stub: int) -> None:
        super().__init__(f"rom {rom:#x} stub {stub:#x}")
        self.rom, self.stub = rom, stub


@dataclass(frozen=True)
class LoaderActions:
    """What the loader does outside of itself; ``restart`` is told whether the straps still say download.

    ``set_watchdog`` says after each write of registers whether the RTC watchdog runs; its bite lets the chip
    sample its straps again.
    """

    transmit: Callable[[bytes], None]
    baud: Callable[[], int]
    set_baud: Callable[[int], None]
    restart: Callable[[bool], None]
    set_watchdog: Callable[[bool], None]
    disconnect: Callable[[], None]


class Link(Protocol):
    """The loader's side of the wire; ``stub`` says who is talking."""

    stub: bool
    actions: LoaderActions

    def reply(self, value: int = 0, data: bytes = b"") -> None: ...
    def send(self, packet: bytes) -> None: ...
