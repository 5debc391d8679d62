# SPDX-License-Identifier: Apache-2.0
"""An emulated board: power, reset lines and straps around an emulator, and the faults of its supply.

    off ──power on──> run ──EN low──> held ──EN high──> run | download

Power is the process. EN ends it and starts another one, since emulators take straps on their command line
only; a restart that the firmware asks for happens within the process.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import HilError, RigError
from hil.virtual.board.cable import Cable
from hil.virtual.board.faults import ActiveFaults
from hil.virtual.board.flash import NorFlash, open_locked
from hil.virtual.board.machine import BROWNOUT_AFTER_S, Mode, Timers, call_later
from hil.virtual.board.reset import ResetActions, ResetCircuit
from hil.virtual.emulator.driver import EmulatedConfig, Emulator, Hooks, RunningChip, Start, elf_of

SUPPLY_GAP_S = 0.1


@dataclass(frozen=True)
class BoardFiles:
    """The files of a board beside its flash; its eFuses outlive it."""

    efuses: Path
    log: Path

    @classmethod
    def beside(cls, flash: Path) -> BoardFiles:
        return cls(flash.with_suffix(".efuses"), flash.with_suffix(".emulator.log"))


def open_efuses(path: Path, emulator: Emulator, mac: bytes) -> int:
    """Lock the eFuse file and return its descriptor; made anew where there is none or it is another board's.

    Raises RigError where it cannot be opened or another board has it.
    """
    fresh = emulator.efuses(mac)
    try:
        fd = open_locked(path, os.O_RDWR | os.O_CREAT, what="eFuse file")
        content = os.pread(fd, len(fresh) + 1, 0)
        if len(content) != len(fresh) or emulator.mac_of(content) != mac:
            os.ftruncate(fd, 0)
            os.pwrite(fd, fresh, 0)
    except OSError as error:
        raise RigError(f"Opening the eFuse file {path} failed: {error.strerror}.") from error
    return fd


class EmulatedBoard:
    """One board; a host is attached to its ``cable`` before ``power_on``. ``fail`` is told why it ended.

    Raises RigError, ConfigError where its files cannot be had.
    """

    def __init__(
        self,
        config: EmulatedConfig,
        emulator: Emulator,
        flash: NorFlash,
        log: Callable[[str], None],
        fail: Callable[[HilError], None],
    ) -> None:
        self.config, self.emulator, self.flash, self.log, self._fail = config, emulator, flash, log, fail
        self.files = BoardFiles.beside(flash.path)
        self._efuses_fd = open_efuses(self.files.efuses, emulator, config.mac)
        self.faults = ActiveFaults()
        self.mode: Mode = "off"
        self.boots = 0
        self.circuit = ResetCircuit(ResetActions(self._hold, self._released, call_later))
        self.cable = Cable(self._deliver, measures_baud=lambda: True, on_drained=self._resume, paced=False)
        self._run: RunningChip | None = None
        self._timers = Timers()

    # the chip's end of the cable; an emulator's UART has no baud rate, so it always has the host's

    def _deliver(self, data: bytes) -> None:
        if self._run:
            self._run.write(data)

    def _send(self, data: bytes) -> bool:
        self.cable.transmit(data, baud=self.cable.host_baud)
        return self.cable.host_has_room

    def _resume(self) -> None:
        if self._run:
            self._run.resume()

    # power and reset

    def power_on(self) -> None:
        if self.mode != "off":
            return
        self._timers.cancel_all()
        if self.circuit.in_reset:
            self.mode = "held"
        else:
            self._start(download=self.circuit.io0_low)

    def power_off(self) -> None:
        """Cut the supply: the emulator is gone, the UART is silent, EN does nothing."""
        self.mode = "off"
        self.log("power off")
        self._stop(power_lost=True)

    def _hold(self) -> None:
        if self.mode != "off":
            self.mode = "held"
            self.log("EN low")
            self._stop(power_lost=False)

    def _released(self, io0_low: bool) -> None:
        if self.mode == "held":
            self._start(download=io0_low)

    def _stop(self, *, power_lost: bool) -> None:
        try:
            self._end_run(power_lost=power_lost)
        except RigError as error:
            self._fail(error)

    def _end_run(self, *, power_lost: bool) -> None:
        self._timers.cancel_all()
        self.cable.clear()
        run, self._run = self._run, None
        if run:
            run.end(power_lost=power_lost)

    def _start(self, *, download: bool) -> None:
        self.mode = "download" if download else "run"
        self.make_noise()
        try:
            self._run = self.emulator.start(self._start_of(download=download), self._hooks())
        except OSError as error:
            self._fail(RigError(f"Starting the emulator of board {self.config.id}: {error}."))
            return
        except HilError as error:
            self._fail(error)
            return
        self.log(f"{self.mode} in process {self._run.pid}")
        if not download:
            self.boots += 1
            if "brownout" in self.faults:
                self._timers.later(BROWNOUT_AFTER_S, self.brown_out)

    def _start_of(self, *, download: bool) -> Start:
        elf = elf_of(self.flash.path)
        return Start(
            self.config,
            self.flash,
            self.files.efuses,
            self.files.log,
            download=download,
            frozen="silent" in self.faults,
            elf=elf.resolve() if elf.exists() and not download else None,
        )

    def _hooks(self) -> Hooks:
        return Hooks(self._send, self._restarted, self._died, self.log)

    def _died(self, how: str) -> None:
        self._run = None
        self.log(how)
        self._fail(RigError(f"{how} (emulated board {self.config.id}).", log=str(self.files.log)))

    def _restarted(self) -> None:
        """The firmware, or a watchdog, has restarted the chip."""
        self.boots += 1
        self.log(f"boot {self.boots}: the chip restarted by itself")

    # what faults do

    def freeze(self) -> None:
        """Stop the chip in its tracks, its clocks too."""
        if self._run:
            self._run.freeze()

    def thaw(self) -> None:
        """Let a frozen chip go on."""
        if self._run:
            self._run.thaw()

    def brown_out(self) -> None:
        """Let the supply fail for a moment."""
        if self.mode != "off":
            self.faults.count_down("brownout")
            self.power_off()
            self._timers.later(SUPPLY_GAP_S, self.power_on)

    def make_noise(self) -> None:
        """Send the noise that the garbage fault asks for; the same count gives the same bytes."""
        count = self.faults.get("garbage")
        if count and self.mode != "off":
            self._send(random.Random(count).randbytes(count))

    @property
    def unplugged(self) -> bool:
        """Never: its cable cannot be pulled."""
        return False

    def disconnect(self) -> None:
        """Cut the connection to the host."""
        self.log("disconnect")
        self.cable.disconnect()

    def state(self) -> dict[str, Any]:
        """Describe the board, for the control socket."""
        return {
            "id": self.config.id,
            "chip": self.config.chip,
            "mac": self.config.mac_text,
            "mode": self.mode,
            "boots": self.boots,
            "host_baud": self.cable.host_baud,
            "dtr": self.circuit.dtr,
            "rts": self.circuit.rts,
            "faults": dict(self.faults.values),
            "emulator_pid": self._run.pid if self._run else None,
            "flash": str(self.flash.path),
            "emulation": {**self.emulator.environment(), "network": self.config.network},
        }

    def close(self) -> None:
        """End the emulator; flash and eFuses keep what was written. Raises RigError where they do not."""
        self.mode = "off"
        try:
            self._end_run(power_lost=False)
        finally:
            self.flash.close()
            os.close(self._efuses_fd)
