# SPDX-License-Identifier: Apache-2.0
"""QEMU for a chip: where it is, what it can emulate, its command line, and a run that nothing disturbs.

A program is looked for where a variable says (HIL_QEMU_RISCV32, HIL_QEMU_XTENSA), on PATH, then among
ESP-IDF's tools. QEMU's virtual time follows the instructions (``-icount``): without it a busy host trips the
interrupt watchdog. ``sleep=on`` keeps it beside the host's clock for a run over a network, ``sleep=off`` lets
it jump over idle time, so that a run without input is the same each time. Beside the host's clock the
watchdogs are off, as in ``idf.py qemu``: where the host keeps an idle chip waiting for 300 ms, its time makes
up for them at once, and the firmware has no turn to feed a watchdog in between.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hil.base.errors import ConfigError, HilError, RigError
from hil.base.finding import Finding
from hil.base.process import how_ended, tied
from hil.virtual.emulator import chips
from hil.virtual.emulator.chips import EmulatedChip

ANSWER_TIMEOUT_S = 20.0
SHIFT = 3  # a guest's instruction takes 2^3 ns of its time
FUNCTIONAL = f"shift={SHIFT},align=off,sleep=on"
SEALED = f"shift={SHIFT},align=off,sleep=off"
SEED = 1  # of the chip's random numbers in a sealed run
_VERSION = re.compile(r"QEMU emulator version (\d+(?:\.\d+)+)")
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class Qemu:
    """A program of QEMU that emulates ``chip``; ``version`` is as in 9.2.2."""

    program: Path
    version: str
    chip: EmulatedChip

    def environment(self, icount: str = FUNCTIONAL) -> Mapping[str, str]:
        """Return what a record says of what it ran on."""
        words = dict(word.split("=") for word in icount.split(","))
        return {"emulator": f"qemu {self.version}", "icount": f"{words['shift']},sleep={words['sleep']}"}


def install_command(chip: EmulatedChip) -> str:
    """Return the command that installs QEMU for a chip: ESP-IDF's own."""
    return f"python $IDF_PATH/tools/idf_tools.py install {chip.package}"


def find_qemu(chip_name: str) -> Qemu:
    """Return the QEMU that emulates a chip.

    Raises:
        ConfigError: no such chip, or its variable names no program.
        RigError: there is none, it does not answer, or it knows no such machine.
    """
    chip = chips.by_name(chip_name)
    program = _find_program(chip)
    if program is None:
        raise RigError(
            f"{chip.program}, which emulates the {chip.name}, is neither on PATH nor among ESP-IDF's tools.",
            next_step=f"{install_command(chip)}, or name it in {chip.variable}.",
        )
    version = _VERSION.search(_ask(program, "--version"))
    if version is None:
        raise RigError(
            f"{program} is no QEMU: it does not tell its version.", next_step=install_command(chip)
        )
    machines = [
        line.split()[0] for line in _ask(program, "-machine", "help").splitlines()[1:] if line.split()
    ]
    if chip.name not in machines:
        raise RigError(
            f"{program} (QEMU {version[1]}) knows no machine {chip.name}: it is not Espressif's.",
            next_step=f"{install_command(chip)}, or name another one in {chip.variable}.",
        )
    return Qemu(program, version[1], chip)


def finding(chip_name: str, *, needed: bool) -> Finding:
    """Return whether there is a QEMU for a chip, and the command that installs it where there is none."""
    subject = f"QEMU for {chip_name}"
    try:
        qemu = find_qemu(chip_name)
    except HilError as error:
        return Finding(subject, ok=False, sentence=error.sentence, mend=error.next_step, needed=needed)
    return Finding(subject, ok=True, sentence=f"{qemu.version} at {qemu.program}", needed=needed)


def _find_program(chip: EmulatedChip) -> Path | None:
    if named := os.environ.get(chip.variable):
        found = shutil.which(named)
        if found is None:
            raise ConfigError(f"{chip.variable} names {named}, which is no program.", next_step="mend it.")
        return Path(found).absolute()
    if found := shutil.which(chip.program):
        return Path(found).absolute()
    tools = Path(os.environ.get("IDF_TOOLS_PATH") or Path.home() / ".espressif") / "tools" / chip.package
    installed = [path for path in tools.glob(f"*/qemu/bin/{chip.program}") if os.access(path, os.X_OK)]
    return max(installed, key=lambda path: _natural(path.parts[-4]), default=None)


def _natural(text: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (0, part) for part in _DIGITS.split(text)]


def _ask(program: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            [program, *words], capture_output=True, text=True, timeout=ANSWER_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RigError(f"{program} {' '.join(words)}: {error}.", next_step="install it again.") from error
    if done.returncode:
        said = " ".join(done.stderr.split()[-30:]) or "nothing"
        raise RigError(
            f"{program} {' '.join(words)} ended with status {done.returncode} and said: {said}.",
            next_step="install it again.",
        )
    return done.stdout


@dataclass(frozen=True)
class Machine:
    """What one start of the machine is given.

    ``serial`` is QEMU's word for where its UART goes, ``nic`` for where its network goes. ``extra`` ends the
    command line.
    """

    flash: Path
    efuses: Path
    serial: str
    nic: str = "none"
    download: bool = False
    icount: str = FUNCTIONAL
    extra: tuple[str, ...] = ()


def command_line(qemu: Qemu, machine: Machine) -> list[str]:
    """Return the command that runs a machine.

    The strap is part of it: QEMU refuses to set a device's property once the machine is made, so another
    strap takes another process.
    """
    chip = qemu.chip
    argv = [str(qemu.program), *chip.machine, "-display", "none", "-monitor", "none"]
    argv += ["-icount", machine.icount]
    argv += ["-drive", f"file={escaped(machine.flash)},if=mtd,format=raw"]
    argv += ["-drive", f"file={escaped(machine.efuses)},if=none,format=raw,id=efuse"]
    argv += ["-global", f"driver={chip.efuse_device},property=drive,value=efuse"]
    if machine.icount != SEALED:
        argv += ["-global", f"driver={chip.watchdog_device},property=wdt_disable,value=true"]
    if machine.download:
        argv += [
            "-global",
            f"driver={chip.strap_device},property=strap_mode,value={chip.download_strap:#04x}",
        ]
    return [*argv, "-nic", machine.nic, "-serial", machine.serial, *machine.extra]


def escaped(value: object) -> str:
    """Return a value as QEMU reads it between commas."""
    return str(value).replace(",", ",,")


def start(
    argv: Sequence[str], *, log: IO[bytes], netns: Path | None = None, fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start QEMU; what it says goes to ``log``. The kernel kills it when the thread that started it ends.

    Raises RigError.
    """
    enter = ["nsenter", f"--net={netns}", "--"] if netns else []
    try:
        return subprocess.Popen(
            tied([*enter, *argv]),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=fds,
        )
    except OSError as error:
        raise RigError(f"Starting {argv[0]}: {error.strerror}.", next_step="hil doctor") from error


def how_it_ended(status: int, log: Path) -> str:
    """Return how QEMU ended, with the last line that it said."""
    how = how_ended(status)
    said = log.read_text(errors="replace").split("\n") if log.exists() else []
    last = next((line.strip() for line in reversed(said) if line.strip()), "")
    return f"QEMU {how}{f' and said: {last}' if last else ''}"


class SealedRun:
    """A chip that boots from a copy of ``flash`` without network and without a word from outside.

    In ``folder`` are the copy (flash.bin), fresh eFuses (efuses.bin), what the chip says (``console``) and
    what QEMU says (qemu.log). Two runs of the same flash write the same console.

    Raises RigError where QEMU cannot be started.
    """

    def __init__(
        self, qemu: Qemu, flash: Path, folder: Path, *, mac: bytes, extra: Sequence[str] = ()
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.console, self.log = folder / "console.log", folder / "qemu.log"
        copy, efuses = folder / "flash.bin", folder / "efuses.bin"
        shutil.copyfile(flash, copy)
        efuses.write_bytes(qemu.chip.efuses(mac))
        self.console.write_bytes(b"")
        machine = Machine(
            copy, efuses, f"file:{self.console}", icount=SEALED, extra=("-seed", str(SEED), *extra)
        )
        with self.log.open("wb") as log:
            self.process = start(command_line(qemu, machine), log=log)

    def check(self) -> None:
        """Raise RigError where QEMU has ended."""
        status = self.process.poll()
        if status is not None:
            raise RigError(f"{how_it_ended(status, self.log)}.", log=str(self.log))

    def close(self) -> None:
        """End the run; its files stay."""
        self.process.kill()
        self.process.wait()
