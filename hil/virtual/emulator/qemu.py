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
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, RigError
from hil.virtual import rack_namespace
from hil.virtual.emulator import process, qemu_chips
from hil.virtual.emulator.console import EmulatorConsole
from hil.virtual.emulator.driver import Abilities, EmulatedConfig, Hooks, Start
from hil.virtual.emulator.qemu_chips import EmulatedChip
from hil.virtual.emulator.qmp import Monitor, monitor_options

NAME = "qemu"
ABILITIES = Abilities(
    chips=tuple(qemu_chips.CHIPS),
    networks=("openeth",),
    counting=tuple(name for name, chip in qemu_chips.CHIPS.items() if chip.counts),
)
END_TIMEOUT_S = 2.0
CHARDEV = "uart"
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

    @property
    def chip_name(self) -> str:
        return self.chip.name

    def environment(self) -> Mapping[str, str]:
        """Return what a record says of what it ran on."""
        return self._environment(FUNCTIONAL)

    def sealed_environment(self) -> Mapping[str, str]:
        """Return what a record of a sealed run says: its time is another."""
        return self._environment(SEALED)

    def _environment(self, icount: str) -> Mapping[str, str]:
        words = dict(word.split("=") for word in icount.split(","))
        return {"emulator": f"{NAME} {self.version}", "icount": f"{words['shift']},sleep={words['sleep']}"}

    def efuses(self, mac: bytes) -> bytes:
        """Return the content of a new eFuse file."""
        return self.chip.efuses(mac)

    def mac_of(self, efuses: bytes) -> bytes:
        """Return the MAC address that an eFuse file holds."""
        return self.chip.mac_of(efuses)

    def start(self, start: Start, hooks: Hooks) -> QemuRun:
        """Start the chip. Raises RigError, OSError."""
        return QemuRun(self, start, hooks)

    def seal(self, flash: Path, folder: Path, *, mac: bytes, extra: Sequence[str] = ()) -> QemuSealedRun:
        """Start a sealed run. Raises RigError."""
        return QemuSealedRun(self, flash, folder, mac=mac, extra=extra)


def install_command(chip_name: str) -> str:
    """Return the command that installs QEMU for a chip: ESP-IDF's own."""
    return f'python3 "$IDF_PATH"/tools/idf_tools.py install {qemu_chips.by_name(chip_name).package}'


def find(chip_name: str) -> Qemu:
    """Return the QEMU that emulates a chip.

    Raises:
        ConfigError: no such chip, or its variable names no program.
        RigError: there is none, it does not answer, or it knows no such machine.
    """
    chip = qemu_chips.by_name(chip_name)
    program = _find_program(chip)
    if program is None:
        raise RigError(
            f"{chip.program}, which emulates the {chip.name}, is neither on PATH nor among ESP-IDF's tools.",
            next_step=f"{install_command(chip.name)}, or name it in {chip.variable}.",
        )
    version = _VERSION.search(process.ask(program, "--version"))
    if version is None:
        raise RigError(
            f"{program} is no QEMU: it does not tell its version.", next_step=install_command(chip.name)
        )
    machines = [
        line.split()[0] for line in process.ask(program, "-machine", "help").splitlines()[1:] if line.split()
    ]
    if chip.name not in machines:
        raise RigError(
            f"{program} (QEMU {version[1]}) knows no machine {chip.name}: it is not Espressif's.",
            next_step=f"{install_command(chip.name)}, or name another one in {chip.variable}.",
        )
    return Qemu(program, version[1], chip)


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


class QemuRun:
    """One process of QEMU, in which the firmware may restart the chip."""

    def __init__(self, qemu: Qemu, start: Start, hooks: Hooks) -> None:
        self._hooks, self._log = hooks, start.log
        self._console = EmulatorConsole(start.flash.path.with_suffix(".uart"), hooks.output)
        ours, theirs = socket.socketpair()
        with theirs:
            self._monitor = Monitor(ours, self._on_event, hooks.log)
            fd = theirs.fileno()
            frozen = ("-S",) if start.frozen else ()
            chardev = f"pipe,id={CHARDEV},path={escaped(self._console.path)}"
            machine = Machine(
                flash=start.flash.path,
                efuses=start.efuses,
                serial=f"chardev:{CHARDEV}",
                nic=nic(start.board),
                download=start.download,
                extra=("-chardev", chardev, *monitor_options(fd), *frozen),
            )
            with self._log.open("ab") as log:
                started = process.start(
                    command_line(qemu, machine), log=log, netns=start.board.netns, fds=[fd]
                )
        self._watched = process.EmulatorProcess(started, self._exited)

    @property
    def pid(self) -> int:
        return self._watched.process.pid

    def write(self, data: bytes) -> None:
        self._console.write(data)

    def resume(self) -> None:
        self._console.resume()

    def freeze(self) -> None:
        self._monitor.execute("stop")

    def thaw(self) -> None:
        self._monitor.execute("cont")

    def end(self, *, power_lost: bool) -> None:
        """End QEMU: first it writes what the flash chip was told, but where its power is lost."""
        self._watched.end(signal.SIGKILL if power_lost else signal.SIGTERM, END_TIMEOUT_S)
        self._close()

    def _on_event(self, name: str, _data: dict[str, Any]) -> None:
        if name == "RESET":
            self._hooks.restarted()

    def _exited(self, status: int) -> None:
        how = process.how_it_ended("QEMU", status, self._log)
        self._hooks.output(self._console.drain())
        self._close()
        self._hooks.ended(how)

    def _close(self) -> None:
        self._monitor.close()
        self._console.close()


def nic(board: EmulatedConfig) -> str:
    """Return QEMU's word for a board's network: the tap in its namespace, none where it has none."""
    if board.netns is None:
        return "none"
    tap = f"tap,ifname={rack_namespace.EMULATOR_DEVICE},script=no,downscript=no"
    return f"{tap},model=open_eth,mac={board.mac_text}"


class QemuSealedRun:
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
            self.process = process.start(command_line(qemu, machine), log=log)

    def check(self) -> None:
        """Raise RigError where QEMU has ended."""
        status = self.process.poll()
        if status is not None:
            raise RigError(f"{process.how_it_ended('QEMU', status, self.log)}.", log=str(self.log))

    def close(self) -> None:
        """End the run; its files stay."""
        self.process.kill()
        self.process.wait()
