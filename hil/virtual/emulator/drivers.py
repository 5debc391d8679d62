# SPDX-License-Identifier: Apache-2.0
"""The emulators that there are, by the name that a rack file gives them, and what each is capable of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from hil.base.errors import ConfigError, HilError
from hil.base.finding import Finding
from hil.virtual.emulator import esp_emu, qemu
from hil.virtual.emulator.driver import Driver, Emulator

if TYPE_CHECKING:  # each emulator's process starts without reading rack files
    from hil.boards.rack import Board

DRIVERS: Mapping[str, Driver] = {driver.NAME: driver for driver in (qemu, esp_emu)}
COUNTING = qemu.ABILITIES.counting  # the chips that `hil cost` measures
find_counting = qemu.find
install_counting = qemu.install_command
PINNED = esp_emu.NAME  # what a project pins by a digest, so that a workflow installs it
PINNED_FILE = esp_emu.DIGESTS.name
install_pinned, pinned_archive = esp_emu.install_command, esp_emu.pinned_archive


def target_of(chip: str) -> str:
    """Return the name of an emulated chip as a target: in records, and as a leg of a workflow has it."""
    return f"emulated-{chip}"


def driver_of(name: str) -> Driver:
    """Return an emulator's driver. Raises ConfigError naming those that there are."""
    if name not in DRIVERS:
        raise ConfigError(
            f"there is no emulator {name!r}.", next_step=f"write one of these: {', '.join(DRIVERS)}."
        )
    return DRIVERS[name]


def check_board(board: Board) -> None:
    """Raise ConfigError, with file and line, where a board's emulator lacks what it asks for."""
    try:
        able = driver_of(board.emulator).ABILITIES
    except ConfigError as error:
        raise ConfigError(f"{board.where}: {error.sentence}", next_step=error.next_step) from None
    for word, has, what in (
        (board.chip, able.chips, "target"),
        (board.network.type, able.networks, "network"),
    ):
        if word not in has:
            others = [name for name, driver in DRIVERS.items() if word in _words(driver, what)]
            raise ConfigError(
                f"{board.where}: board {board.id!r}: {board.emulator} has no {what} {word}.",
                next_step=f"take {' or '.join((*has, *(f'emulator: {name}' for name in others)))}.",
            )
    if board.trace and not able.traces:
        tracing = " or ".join(name for name, driver in DRIVERS.items() if driver.ABILITIES.traces)
        raise ConfigError(
            f"{board.where}: board {board.id!r}: {board.emulator} has no trace.",
            next_step=f"delete the line trace, or take emulator: {tracing}.",
        )


def _words(driver: Driver, what: str) -> tuple[str, ...]:
    return driver.ABILITIES.chips if what == "target" else driver.ABILITIES.networks


def emulators_of(boards: Iterable[Board]) -> list[tuple[str, str]]:
    """Return name and chip of each emulator that boards need. Raises ConfigError as check_board() does."""
    emulated = [board for board in boards if board.kind == "emulated"]
    for board in emulated:
        check_board(board)
    return sorted({(board.emulator, board.chip) for board in emulated})


def find(name: str, chip: str) -> Emulator:
    """Return an emulator of a chip. Raises ConfigError, RigError with the command that installs it."""
    return driver_of(name).find(chip)


def finding(name: str, chip: str, *, needed: bool) -> Finding:
    """Return whether an emulator of a chip is there, and the command that installs it where it is not."""
    subject = f"{name} for {chip}"
    try:
        emulator = find(name, chip)
    except HilError as error:
        return Finding(subject, ok=False, sentence=error.sentence, mend=error.next_step, needed=needed)
    return Finding(subject, ok=True, sentence=f"{emulator.version} at {emulator.program}", needed=needed)


def what_is_there(boards: Iterable[Board]) -> list[Finding]:
    """Return what of all emulators is installed, and what is not though boards are of it."""
    wanted = {(board.emulator, board.chip) for board in boards}
    found = [
        finding(driver.NAME, chip, needed=False)
        for driver in DRIVERS.values()
        for chip in driver.ABILITIES.chips
    ]
    return [one for one in found if one.ok or one.subject in {f"{name} for {chip}" for name, chip in wanted}]
