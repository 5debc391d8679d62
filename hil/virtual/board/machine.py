# SPDX-License-Identifier: Apache-2.0
"""The board: power, reset, download mode, running the application, crashing, and the faults.

Everything happens in one asyncio event loop, so nothing here needs a lock.

    off ──power on──> run ──reset──> held ──EN rises──> run | download
                       ^───── exit, crash, brownout ─────┘
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any, Literal

from hil.virtual.board import panic
from hil.virtual.board.boot import ROM_BAUD, App, boot_from_flash, download_banner
from hil.virtual.board.cable import Cable
from hil.virtual.board.config import BoardConfig
from hil.virtual.board.faults import UNPLUGGED, ActiveFaults
from hil.virtual.board.flash import NorFlash
from hil.virtual.board.flash_commands import LoaderActions
from hil.virtual.board.loader import SerialLoader
from hil.virtual.board.panic import PanicText
from hil.virtual.board.reset import POWER_ON, RTC_WATCHDOG, SOFTWARE, Reset, ResetActions, ResetCircuit
from hil.virtual.board.running import AppRunner


def call_later(delay_s: float, action: Callable[[], None]) -> asyncio.TimerHandle:
    """Do something after ``delay_s`` whatever happens to the chip."""
    return asyncio.get_running_loop().call_later(delay_s, action)


class Timers:
    """What the chip does later, unless a reset comes first and cancels it."""

    def __init__(self) -> None:
        self._handles: list[asyncio.TimerHandle] = []
        self._watchdog: asyncio.TimerHandle | None = None

    def later(self, delay_s: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        handle = call_later(delay_s, action)
        self._handles.append(handle)
        return handle

    def soon(self, action: Callable[[], None]) -> None:
        self.later(0.0, action)

    def set_watchdog(self, runs: bool, delay_s: float, bite: Callable[[], None]) -> None:
        """Start the watchdog or stop it; one that runs already goes on, for nobody has fed it."""
        if not runs:
            self._stop_watchdog()
        elif self._watchdog is None:
            self._watchdog = self.later(delay_s, bite)

    def cancel_all(self) -> None:
        for handle in self._handles:
            handle.cancel()
        self._handles.clear()
        self._stop_watchdog()

    def _stop_watchdog(self) -> None:
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None


Mode = Literal["off", "held", "download", "run"]

# A board that cannot boot starts over for ever; the ROM's watchdog takes about this long.
REBOOT_LOOP_DELAY_S = 0.3
RESTART_DELAY_S = 0.05
BROWNOUT_AFTER_S = 0.2
# Later than on a chip (15 ms as esptool sets it): a client whose writes take 50 ms each still has to lock it.
RTC_WATCHDOG_DELAY_S = 0.3


class VirtualBoard:
    """One board; a host is attached to its ``cable`` before ``power_on``."""

    def __init__(self, config: BoardConfig, flash: NorFlash, log: Callable[[str], None]) -> None:
        self.config, self.flash, self._log = config, flash, log
        self.faults = ActiveFaults()
        self.mode: Mode = "off"
        self.boots = 0
        self.reset_reason: Reset = POWER_ON
        self._chance = random.Random(config.id)  # of a bad line
        self.circuit = ResetCircuit(ResetActions(self._hold, self._released, call_later))
        self.cable = Cable(
            self._deliver,
            measures_baud=self._measures_baud,
            on_drained=lambda: self.app.resume_output(),
            spoil=self._spoil,
            paced=config.paced,
        )
        self.app = AppRunner(config, flash.fd, self.cable, self._app_exited)
        self._loader: SerialLoader | None = None
        self._timers = Timers()
        self._started_ns = time.monotonic_ns()

    # the chip's end of the cable

    def _measures_baud(self) -> bool:
        # The ROM measures the rate of the first SYNC; until then it understands any.
        return self._loader is not None and not self._loader.synced

    def _deliver(self, data: bytes) -> None:
        if self._loader:
            self._loader.feed(data)
        else:
            self.app.write(data)

    # power and reset

    def power_on(self) -> None:
        if self.mode != "off":
            return
        if self.circuit.in_reset:
            self.mode = "held"
        else:
            self._enter(POWER_ON, download=self.circuit.io0_low)

    def power_off(self) -> None:
        """Cut the supply: the app is gone, the UART is silent, EN does nothing."""
        self._stop()
        self.mode = "off"
        self._end_hang("power")
        self._log("power off")

    def _hold(self) -> None:
        if "no_reset" in self.faults:
            self._log("EN does nothing")
        elif self.mode != "off":
            self._stop()
            self.mode = "held"
            self._log("EN low")

    def _released(self, io0_low: bool) -> None:
        if self.mode == "held":
            self._enter(POWER_ON, download=io0_low)

    def _restart(self, reset: Reset, *, download: bool = False) -> None:
        self._stop()
        self._enter(reset, download=download)

    def _stop(self) -> None:
        """Stop whatever runs, as a reset does."""
        self._timers.cancel_all()
        self._loader = None
        self.cable.clear()
        self.app.close()

    def _enter(self, reset: Reset, *, download: bool) -> None:
        self._end_hang("reset")
        if self.faults.get("hang") == "power":
            self.mode = "run"
            self._log("hangs: a reset does nothing")
            return
        download = download or "download" in self.faults
        self._started_ns = time.monotonic_ns()
        self.cable.chip_baud = ROM_BAUD
        self.reset_reason = reset
        self.mode = "download" if download else "run"
        self.make_noise()
        if download:
            self._enter_download(reset)
        else:
            self.boots += 1
            self._log(f"boot {self.boots}: {reset.reason}")
            self._boot(reset)

    def _enter_download(self, reset: Reset) -> None:
        self._log("download mode")
        timers = self._timers
        self.cable.transmit(download_banner(self.config.chip, reset))
        actions = LoaderActions(
            transmit=self.cable.transmit,
            baud=lambda: self.cable.chip_baud,
            set_baud=self._set_chip_baud,
            restart=lambda download: timers.soon(lambda: self._restart(SOFTWARE, download=download)),
            set_watchdog=lambda runs: timers.set_watchdog(runs, RTC_WATCHDOG_DELAY_S, self._watchdog_reset),
            disconnect=self.disconnect,
        )
        config = self.config
        self._loader = SerialLoader(config.chip, self.flash, config.mac, self.faults, actions)

    def _watchdog_reset(self) -> None:
        self._restart(RTC_WATCHDOG, download=self.circuit.io0_low)

    def _set_chip_baud(self, baud: int) -> None:
        self.cable.chip_baud = baud

    # running

    def _boot(self, reset: Reset) -> None:
        boot = boot_from_flash(self.config.chip, self.flash, reset, self.uptime_ms)
        for baud, text in boot.output:
            self.cable.transmit(text, baud=baud)
        self.cable.chip_baud = boot.console_baud
        if boot.app is None:
            self._log("nothing to boot")
            self._timers.later(REBOOT_LOOP_DELAY_S, lambda: self._restart(boot.next_reset))
            return
        self._start_app(boot.app, reset)
        if "brownout" in self.faults:
            self._timers.later(BROWNOUT_AFTER_S, self.brown_out)

    def _start_app(self, info: App, reset: Reset) -> None:
        try:
            self.app.start(info, reset, self._started_ns, self.faults)
        except OSError as error:
            said = f"E ({self.uptime_ms()}) vboard: cannot start the application: {error}\r\n"
            self.cable.transmit(said.encode())
            self._timers.later(REBOOT_LOOP_DELAY_S, lambda: self._restart(SOFTWARE))
            return
        self._log(f"app {info.description.project} runs as process {self.app.pid}")
        if self.faults.get("disconnect") == "boot":
            self.faults.switch_off("disconnect")
            self._timers.soon(self.disconnect)

    def _app_exited(self, status: int) -> None:
        self._log(f"app ended with status {status}")
        self._crash(panic.from_exit(self.config.chip, status, self.app.elf_sha256, self.uptime_ms()))

    def _crash(self, crash: PanicText) -> None:
        """The app is over: say why, and start again. What is already on the wire still arrives."""
        self.app.close()
        self.cable.transmit(crash.text.encode())
        self._timers.later(RESTART_DELAY_S, lambda: self._restart_when_sent(crash.reset))

    def _restart_when_sent(self, reset: Reset) -> None:
        if self.cable.is_sending:
            self._timers.later(0.01, lambda: self._restart_when_sent(reset))
        else:
            self._restart(reset)

    # what faults do (see injection.py)

    def crash_app(self, crash: Callable[[bytes], PanicText]) -> None:
        """End the running app as ``crash``, which is given the ELF's SHA-256, says."""
        if self.app.pid is not None:
            self.app.drain()
            self._crash(crash(self.app.elf_sha256))

    def brown_out(self) -> None:
        """Let the supply sag while the app runs."""
        if self.mode == "run":
            self.faults.count_down("brownout")
            self._crash(panic.brownout())

    def hang(self) -> None:
        """Stand still: neither app nor loader says anything more, and what is sent to them is lost."""
        self._stop()

    def _end_hang(self, by: str) -> None:
        if self.faults.get("hang") == by:
            self.faults.switch_off("hang")

    def make_noise(self) -> None:
        """Send the noise that the garbage fault asks for; the same count gives the same bytes."""
        count = self.faults.get("garbage")
        if count and self.mode != "off":
            self.cable.transmit(random.Random(count).randbytes(count))

    def say(self, text: str) -> None:
        """Log a line, as the app might."""
        if self.mode == "run":
            self.cable.transmit(f"{text}\r\n".encode())

    def flood(self, count: int) -> None:
        """Log ``count`` bytes and more, in lines, as an app without sense would."""
        if self.mode == "run":
            line = f"W ({self.uptime_ms()}) flood: {'nothing to say, ' * 8}\r\n".encode()
            self.cable.transmit(line * (count // len(line) + 1))

    def _spoil(self, data: bytes) -> bytes:
        """Return what arrives of what a running app sends, where its line is bad."""
        if self.mode != "run":
            return data
        if every := self.faults.get("torn_lines"):
            data = self._tear(data, every)
        if ppm := self.faults.get("bit_flips"):
            spoilt = bytearray(data)
            for at in range(len(spoilt)):
                if self._chance.random() < ppm / 1e6:
                    spoilt[at] ^= 1 << self._chance.randrange(8)
            return bytes(spoilt)
        return data

    def _tear(self, data: bytes, every: int) -> bytes:
        lines = data.splitlines(keepends=True)
        return b"".join(
            line[: len(line) // 2] if self._chance.random() < 1 / every else line for line in lines
        )

    @property
    def unplugged(self) -> bool:
        """Whether its cable was pulled."""
        return bool(self.faults.get("disconnect") == UNPLUGGED)

    def disconnect(self) -> None:
        """Cut the connection to the host."""
        self._log("disconnect")
        self.cable.disconnect()

    # time and state

    def state(self) -> dict[str, Any]:
        """Describe the board, for the control socket."""
        pid = self.app.pid
        runs = self.app.info if pid is not None else None
        return {
            "id": self.config.id,
            "chip": self.config.chip.name,
            "mac": self.config.mac_text,
            "mode": self.mode,
            "boots": self.boots,
            "reset_reason": self.reset_reason.reason,
            "uart_baud": self.cable.chip_baud,
            "host_baud": self.cable.host_baud,
            "dtr": self.circuit.dtr,
            "rts": self.circuit.rts,
            "faults": dict(self.faults.values),
            "app_pid": pid,
            "app_partition": runs.partition.name if runs else None,
            "app_elf_sha256": runs.description.elf_sha256.hex() if runs else None,
            "loader": {"stub": self._loader.stub, "blocks": self._loader.blocks_written}
            if self._loader
            else None,
            "flash": str(self.flash.path),
        }

    def close(self) -> None:
        """End the app; the flash keeps what was written."""
        self._stop()
        self.mode = "off"
        self.flash.close()

    def uptime_ms(self) -> int:
        """Milliseconds since the last reset."""
        return (time.monotonic_ns() - self._started_ns) // 1_000_000
