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
from hil.virtual.board.config import BoardConfig, Host
from hil.virtual.board.faults import ActiveFaults
from hil.virtual.board.flash import NorFlash
from hil.virtual.board.line import Wire
from hil.virtual.board.loader import LoaderActions, SerialLoader
from hil.virtual.board.panic import Crash
from hil.virtual.board.reset import ResetActions, ResetCircuit
from hil.virtual.board.resets import POWER_ON, SOFTWARE, Reset
from hil.virtual.board.running import RunningApp, app_start

Mode = Literal["off", "held", "download", "run"]

# A board that cannot boot starts over for ever; the ROM's watchdog takes about this long.
REBOOT_LOOP_DELAY_S = 0.3
RESTART_DELAY_S = 0.05
BROWNOUT_AFTER_S = 0.2
# A paced UART blocks its writer once its transmit buffer is full.
_TRANSMIT_BUFFER_BYTES = 8192


class Board:
    """One board; ``host`` is attached before ``power_on``."""

    def __init__(self, config: BoardConfig, flash: NorFlash, log: Callable[[str], None]) -> None:
        self.config, self.flash, self._log = config, flash, log
        self.faults = ActiveFaults()
        self.mode: Mode = "off"
        self.boots = 0
        self.reset_reason: Reset = POWER_ON
        self.uart_baud = ROM_BAUD
        self.host: Host | None = None
        self.circuit = ResetCircuit(ResetActions(self._hold, self._released, self._call_later))
        self._loader: SerialLoader | None = None
        self._app: RunningApp | None = None
        self._app_info: App | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._started_ns = time.monotonic_ns()
        self._to_host = Wire(
            self._deliver_to_host,
            received_baud=self._host_baud,
            paced=config.paced,
            on_drained=self._resume_app_output,
        )
        self._from_host = Wire(self._deliver_to_chip, received_baud=self._chip_baud, paced=config.paced)

    @property
    def app_offset(self) -> int | None:
        """Where in flash the app lies that ran last."""
        return self._app_info.partition.offset if self._app_info else None

    # the cable

    def receive(self, data: bytes) -> None:
        """Bytes from the host."""
        self._from_host.send(data, sent_baud=self._host_baud())

    def transmit(self, data: bytes, *, baud: int | None = None) -> None:
        """Bytes from the chip, at the chip's own rate."""
        self._to_host.send(data, sent_baud=baud or self.uart_baud)

    def _host_baud(self) -> int:
        return self.host.baud if self.host else ROM_BAUD

    def _chip_baud(self) -> int:
        # The ROM measures the rate of the first SYNC; until then it understands any.
        measuring = self.mode == "download" and self._loader is not None and not self._loader.synced
        if measuring:
            self.uart_baud = self._host_baud()
        return self.uart_baud

    def _deliver_to_host(self, data: bytes) -> None:
        if self.host:
            self.host.receive(data)

    def _deliver_to_chip(self, data: bytes) -> None:
        if self.mode == "download" and self._loader:
            self._loader.feed(data)
        elif self.mode == "run" and self._app:
            self._app.process.write(data)

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
        self._log("power off")

    def _hold(self) -> None:
        if self.mode != "off":
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
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._loader = None
        self._to_host.clear()
        self._close_app()

    def _enter(self, reset: Reset, *, download: bool) -> None:
        self._started_ns = time.monotonic_ns()
        self.uart_baud = ROM_BAUD
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
        self.transmit(download_banner(self.config.chip, reset))
        actions = LoaderActions(
            transmit=self.transmit,
            baud=lambda: self.uart_baud,
            set_baud=self._set_uart_baud,
            restart=lambda download: self._soon(lambda: self._restart(SOFTWARE, download=download)),
            disconnect=self.disconnect,
        )
        config = self.config
        self._loader = SerialLoader(config.chip, self.flash, config.mac, self.faults, actions)

    def _set_uart_baud(self, baud: int) -> None:
        self.uart_baud = baud

    # running

    def _boot(self, reset: Reset) -> None:
        boot = boot_from_flash(self.config.chip, self.flash, reset, self.uptime_ms)
        for baud, text in boot.output:
            self.transmit(text, baud=baud)
        self.uart_baud = boot.console_baud
        if boot.app is None:
            self._log("nothing to boot")
            self._later(REBOOT_LOOP_DELAY_S, lambda: self._restart(boot.next_reset))
            return
        self._start_app(boot.app, reset)
        if "brownout" in self.faults:
            self._later(BROWNOUT_AFTER_S, self.brown_out)

    def _start_app(self, info: App, reset: Reset) -> None:
        self._app_info = info
        start = app_start(info, self.config, self.flash.fd, reset, self._started_ns)
        try:
            self._app = RunningApp(start, self._app_output, self._app_exited, frozen="silent" in self.faults)
        except OSError as error:
            self.transmit(
                f"E ({self.uptime_ms()}) vboard: cannot start the application: {error}\r\n".encode()
            )
            self._later(REBOOT_LOOP_DELAY_S, lambda: self._restart(SOFTWARE))
            return
        self._log(f"app {info.description.project} runs as process {self._app.process.pid}")
        if self.faults.get("disconnect") == "boot":
            self.faults.switch_off("disconnect")
            self._soon(self.disconnect)

    def _app_output(self, data: bytes) -> bool:
        """Send what the app wrote; return whether there is room for more."""
        self.transmit(data)
        return self._to_host.queued_bytes <= _TRANSMIT_BUFFER_BYTES

    def _resume_app_output(self) -> None:
        if self._app and "silent" not in self.faults:
            self._app.resume_output()

    def _app_exited(self, status: int) -> None:
        assert self._app_info is not None
        self._log(f"app ended with status {status}")
        self._crash(panic.from_exit(status, self._app_info.description.elf_sha256, self.uptime_ms()))

    def _crash(self, crash: Crash) -> None:
        """The app is over: say why, and start again. What is already on the wire still arrives."""
        self._close_app()
        self.transmit(crash.text.encode())
        self._later(RESTART_DELAY_S, lambda: self._restart_when_sent(crash.reset))

    def _restart_when_sent(self, reset: Reset) -> None:
        if self._to_host.queued_bytes:
            self._later(0.01, lambda: self._restart_when_sent(reset))
        else:
            self._restart(reset)

    def _close_app(self) -> None:
        if self._app:
            self._app.close()
            self._app = None

    # what faults do (see injection.py)

    def crash_app(self, crash: Callable[[bytes], Crash]) -> None:
        """End the running app as ``crash``, which is given the ELF's SHA-256, says."""
        if self._app and self._app_info:
            self.transmit(self._app.process.drain())
            self._crash(crash(self._app_info.description.elf_sha256))

    def brown_out(self) -> None:
        """Let the supply sag while the app runs."""
        if self.mode == "run":
            self.faults.count_down("brownout")
            self._crash(panic.brownout())

    def make_noise(self) -> None:
        """Send the noise that the garbage fault asks for; the same count gives the same bytes."""
        count = self.faults.get("garbage")
        if count and self.mode != "off":
            self.transmit(random.Random(count).randbytes(count))

    def freeze(self) -> None:
        """Stop the app in its tracks."""
        if self._app:
            self._app.freeze()

    def thaw(self) -> None:
        """Let a frozen app go on."""
        if self._app:
            self._app.thaw()

    def disconnect(self) -> None:
        """Cut the connection to the host."""
        self._log("disconnect")
        if self.host:
            self.host.disconnect()

    # time and state

    def state(self) -> dict[str, Any]:
        """Describe the board, for the control socket."""
        app, info = self._app, self._app_info
        return {
            "id": self.config.id,
            "chip": self.config.chip.name,
            "mac": self.config.mac_text,
            "mode": self.mode,
            "boots": self.boots,
            "reset_reason": self.reset_reason.reason,
            "uart_baud": self.uart_baud,
            "host_baud": self._host_baud(),
            "dtr": self.circuit.dtr,
            "rts": self.circuit.rts,
            "faults": dict(self.faults.values),
            "app_pid": app.process.pid if app else None,
            "app_partition": info.partition.name if app and info else None,
            "app_elf_sha256": info.description.elf_sha256.hex() if app and info else None,
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

    def _later(self, delay_s: float, action: Callable[[], None]) -> None:
        """Do something after ``delay_s`` unless a reset comes first."""
        self._timers.append(self._call_later(delay_s, action))

    def _soon(self, action: Callable[[], None]) -> None:
        self._later(0.0, action)

    def _call_later(self, delay_s: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(delay_s, action)
