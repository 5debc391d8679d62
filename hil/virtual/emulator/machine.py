# SPDX-License-Identifier: Apache-2.0
"""An emulated board: power, reset lines and straps around a process of QEMU, and the faults of its supply.

    off ──power on──> run ──EN low──> held ──EN high──> run | download

Power is the process. EN ends it and starts another one, since QEMU takes straps on its command line only; a
restart that the firmware asks for happens within QEMU.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import HilError, RigError
from hil.virtual import rack_namespace
from hil.virtual.board.cable import Cable
from hil.virtual.board.config import BoardConfig
from hil.virtual.board.faults import ActiveFaults
from hil.virtual.board.flash import NorFlash, open_locked
from hil.virtual.board.machine import BROWNOUT_AFTER_S, Mode, Timers, call_later
from hil.virtual.board.reset import ResetActions, ResetCircuit
from hil.virtual.emulator import qemu as emulator
from hil.virtual.emulator.chips import EmulatedChip
from hil.virtual.emulator.console import CHARDEV, EmulatorConsole
from hil.virtual.emulator.qemu import Machine, Qemu
from hil.virtual.emulator.qmp import Monitor, monitor_options

END_TIMEOUT_S = 2.0
SUPPLY_GAP_S = 0.1


@dataclass(frozen=True)
class BoardFiles:
    """The files of a board beside its flash; its eFuses outlive it."""

    efuses: Path
    uart: Path
    log: Path

    @classmethod
    def beside(cls, flash: Path) -> BoardFiles:
        return cls(flash.with_suffix(".efuses"), flash.with_suffix(".uart"), flash.with_suffix(".qemu.log"))


def open_efuses(path: Path, chip: EmulatedChip, mac: bytes) -> int:
    """Lock the eFuse file and return its descriptor; made anew where there is none or it is another board's.

    Raises RigError where it cannot be opened or another board has it.
    """
    fresh = chip.efuses(mac)
    try:
        fd = open_locked(path, os.O_RDWR | os.O_CREAT, what="eFuse file")
        content = os.pread(fd, len(fresh) + 1, 0)
        if len(content) != len(fresh) or chip.mac_of(content) != mac:
            os.ftruncate(fd, 0)
            os.pwrite(fd, fresh, 0)
    except OSError as error:
        raise RigError(f"Opening the eFuse file {path} failed: {error.strerror}.") from error
    return fd


class Run:
    """One process of QEMU. ``on_exit`` is told how it ended, after all output has been handed over."""

    def __init__(
        self,
        board: EmulatedBoard,
        on_output: Callable[[bytes], bool],
        on_exit: Callable[[str], None],
        *,
        download: bool,
        frozen: bool,
    ) -> None:
        self._on_output, self._on_exit, self._log = on_output, on_exit, board.files.log
        self._loop = asyncio.get_running_loop()
        self.console = EmulatorConsole(board.files.uart, on_output)
        ours, theirs = socket.socketpair()
        with theirs:
            self.monitor = Monitor(ours, board.on_event, board.log)
            fd = theirs.fileno()
            options = (*self.console.options, *monitor_options(fd), *(("-S",) if frozen else ()))
            machine = Machine(
                flash=board.flash.path,
                efuses=board.files.efuses,
                serial=f"chardev:{CHARDEV}",
                nic=nic(board.config),
                download=download,
                extra=options,
            )
            command = emulator.command_line(board.qemu, machine)
            with self._log.open("ab") as log:
                self.process = emulator.start(command, log=log, netns=board.config.netns, fds=[fd])
        self._pidfd = os.pidfd_open(self.process.pid)
        self._loop.add_reader(self._pidfd, self._exited)

    def end(self, *, in_order: bool) -> None:
        """End QEMU; ``in_order``, it first writes what the flash chip was told, else it is cut off."""
        if in_order:
            self.process.terminate()
            try:
                self.process.wait(END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                in_order = False
        if not in_order:
            self.process.kill()
            self.process.wait()
        self._close()

    def _exited(self) -> None:
        how = emulator.how_it_ended(self.process.wait(), self._log)
        self._on_output(self.console.drain())
        self._close()
        self._on_exit(how)

    def _close(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self.monitor.close()
        self.console.close()


def nic(config: BoardConfig) -> str:
    """Return QEMU's word for the board's network: the tap in its namespace, none where it has none."""
    if config.netns is None:
        return "none"
    tap = f"tap,ifname={rack_namespace.EMULATOR_DEVICE},script=no,downscript=no"
    return f"{tap},model=open_eth,mac={config.mac_text}"


class EmulatedBoard:
    """One board; a host is attached to its ``cable`` before ``power_on``. ``fail`` is told that QEMU died.

    Raises RigError, ConfigError where its files cannot be had.
    """

    def __init__(
        self,
        config: BoardConfig,
        qemu: Qemu,
        flash: NorFlash,
        log: Callable[[str], None],
        fail: Callable[[HilError], None],
    ) -> None:
        self.config, self.qemu, self.flash, self.log, self._fail = config, qemu, flash, log, fail
        self.files = BoardFiles.beside(flash.path)
        self._efuses_fd = open_efuses(self.files.efuses, qemu.chip, config.mac)
        self.faults = ActiveFaults()
        self.mode: Mode = "off"
        self.boots = 0
        self.circuit = ResetCircuit(ResetActions(self._hold, self._released, call_later))
        self.cable = Cable(self._deliver, measures_baud=lambda: True, on_drained=self._resume, paced=False)
        self._run: Run | None = None
        self._timers = Timers()

    # the chip's end of the cable; QEMU's UART has no baud rate, so it always has the host's

    def _deliver(self, data: bytes) -> None:
        if self._run:
            self._run.console.write(data)

    def _send(self, data: bytes) -> bool:
        self.cable.transmit(data, baud=self.cable.host_baud)
        return self.cable.host_has_room

    def _resume(self) -> None:
        if self._run:
            self._run.console.resume()

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
        """Cut the supply: QEMU is gone, the UART is silent, EN does nothing."""
        self._stop(in_order=False)
        self.mode = "off"
        self.log("power off")

    def _hold(self) -> None:
        if self.mode != "off":
            self._stop(in_order=True)
            self.mode = "held"
            self.log("EN low")

    def _released(self, io0_low: bool) -> None:
        if self.mode == "held":
            self._start(download=io0_low)

    def _stop(self, *, in_order: bool) -> None:
        self._timers.cancel_all()
        run, self._run = self._run, None
        if run:
            run.end(in_order=in_order)
        self.cable.clear()

    def _start(self, *, download: bool) -> None:
        self.mode = "download" if download else "run"
        self.make_noise()
        try:
            self._run = Run(self, self._send, self._died, download=download, frozen="silent" in self.faults)
        except OSError as error:
            self._fail(RigError(f"Starting QEMU for board {self.config.id}: {error}."))
            return
        except HilError as error:
            self._fail(error)
            return
        self.log(f"{self.mode} in process {self._run.process.pid}")
        if not download:
            self.boots += 1
            if "brownout" in self.faults:
                self._timers.later(BROWNOUT_AFTER_S, self.brown_out)

    def _died(self, how: str) -> None:
        self._run = None
        self.log(how)
        self._fail(RigError(f"{how} (emulated board {self.config.id}).", log=str(self.files.log)))

    def on_event(self, name: str, _data: dict[str, Any]) -> None:
        """QEMU's: the firmware, or a watchdog, has restarted the chip."""
        if name == "RESET":
            self.boots += 1
            self.log(f"boot {self.boots}: the chip restarted by itself")

    # what faults do

    def freeze(self) -> None:
        """Stop the chip in its tracks, its clocks too."""
        if self._run:
            self._run.monitor.execute("stop")

    def thaw(self) -> None:
        """Let a frozen chip go on."""
        if self._run:
            self._run.monitor.execute("cont")

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
            "chip": self.config.chip.name,
            "mac": self.config.mac_text,
            "mode": self.mode,
            "boots": self.boots,
            "host_baud": self.cable.host_baud,
            "dtr": self.circuit.dtr,
            "rts": self.circuit.rts,
            "faults": dict(self.faults.values),
            "qemu_pid": self._run.process.pid if self._run else None,
            "flash": str(self.flash.path),
            **self.qemu.environment(),
        }

    def close(self) -> None:
        """End QEMU; flash and eFuses keep what was written."""
        self._stop(in_order=True)
        self.mode = "off"
        self.flash.close()
        os.close(self._efuses_fd)
