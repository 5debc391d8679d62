# SPDX-License-Identifier: Apache-2.0
"""The protocol of an emulator: what a board, a rack and a run know of it. A driver is a module beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hil.virtual.board.flash import NorFlash


@dataclass(frozen=True)
class Abilities:
    """The chips and networks that an emulator has, in the words of a rack file.

    Each has a clock beside the host's. ``counting`` are the chips whose instructions are a clock, too, which
    is the same in each boot. ``traces``: it writes a timeline of the firmware's tasks.
    """

    chips: tuple[str, ...]
    networks: tuple[str, ...]
    counting: tuple[str, ...] = ()
    traces: bool = False


@dataclass(frozen=True)
class EmulatedConfig:
    """Who a board is. Without ``netns`` it has no network. ``network`` is a rack file's type; where that is
    ``wifi``, the only access point is called ``ssid``."""

    id: str
    chip: str
    mac: bytes
    netns: Path | None = None
    network: str = "openeth"
    ssid: str = ""
    password: str = ""

    @property
    def mac_text(self) -> str:
        return self.mac.hex(":")


@dataclass(frozen=True)
class Start:
    """What a start of a chip is given. ``download`` enters its serial loader; ``frozen``, it stands still.

    With the ``elf`` of the firmware the emulator writes a timeline to ``timeline_of(flash.path)``.
    """

    board: EmulatedConfig
    flash: NorFlash
    efuses: Path
    log: Path
    download: bool = False
    frozen: bool = False
    elf: Path | None = None


def elf_of(flash: Path) -> Path:
    """Return where a run links the ELF file of a boot that is to be traced."""
    return flash.with_suffix(".elf")


def timeline_of(flash: Path) -> Path:
    """Return where an emulator writes the timeline of its last start from flash."""
    return flash.with_suffix(".timeline.json")


@dataclass(frozen=True)
class Hooks:
    """What a chip tells: its UART's bytes (answered: is there room for more?), that it restarted by itself,
    how its emulator ended unasked, after all output; and lines for the board's log."""

    output: Callable[[bytes], bool]
    restarted: Callable[[], None]
    ended: Callable[[str], None]
    log: Callable[[str], None]


class RunningChip(Protocol):
    """One process of an emulator, from a start to its end."""

    @property
    def pid(self) -> int: ...
    def write(self, data: bytes) -> None:
        """Send to the chip's UART; what it does not take yet waits."""

    def resume(self) -> None:
        """Take output again, after there was no room."""

    def freeze(self) -> None: ...
    def thaw(self) -> None: ...
    def end(self, *, power_lost: bool) -> None:
        """End the chip: held in reset, or without power. Its flash keeps what a chip's would.

        Raises RigError where the emulator was killed before it had saved the flash.
        """


class Emulator(Protocol):
    """An emulator that is installed, for one chip."""

    @property
    def program(self) -> Path: ...
    @property
    def version(self) -> str: ...
    @property
    def chip_name(self) -> str: ...
    def environment(self) -> Mapping[str, str]:
        """Return what a record says of what it ran on."""

    def efuses(self, mac: bytes) -> bytes:
        """Return the content of a new eFuse file."""

    def mac_of(self, efuses: bytes) -> bytes:
        """Return the MAC address that an eFuse file holds."""

    def start(self, start: Start, hooks: Hooks) -> RunningChip:
        """Start the chip. Raises RigError, OSError."""


class SealedRun(Protocol):
    """A chip that boots from a copy of a flash, without a word from outside; its output is in ``console``."""

    @property
    def console(self) -> Path: ...
    def check(self) -> None:
        """Raise RigError where the emulator has ended."""

    def close(self) -> None:
        """End the run; its files stay."""


class CountingEmulator(Emulator, Protocol):
    """An emulator that counts instructions."""

    def sealed_environment(self) -> Mapping[str, str]:
        """Return what a record of a sealed run says of it."""

    def seal(self, flash: Path, folder: Path, *, mac: bytes, extra: Sequence[str] = ()) -> SealedRun:
        """Start a sealed run; its files are in ``folder``. Raises RigError."""


class Driver(Protocol):
    """A module that drives an emulator."""

    NAME: str
    ABILITIES: Abilities

    def find(self, chip_name: str) -> Emulator:
        """Return the emulator of a chip. Raises ConfigError, RigError with the command that installs it."""
