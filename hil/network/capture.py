"""What crosses the host's interface to and from one board, written by tcpdump into a .pcap file."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.errors import RigError
from hil.network.process import Process, Spawner, how_ended

START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 5.0
QUIET_S = 0.05  # nothing written for so long: what the kernel still held has been written
QUIET_TIMEOUT_S = 2.0
POLL_S = 0.005
BUFFER_KIB = 16384
SNAP_BYTES = 128  # Ethernet, IP and TCP headers with all options, or iperf's UDP header
SYSTEM_FOLDERS = "/usr/sbin:/usr/local/sbin"
INSTALL = "sudo apt-get install tcpdump"
PERMIT = "sudo setcap cap_net_raw,cap_net_admin=eip $(command -v tcpdump)"

_COUNTS = {
    "captured": re.compile(r"^(\d+) packets? captured", re.MULTILINE),
    "received": re.compile(r"^(\d+) packets? received by filter", re.MULTILINE),
    "dropped": re.compile(r"^(\d+) packets? dropped by kernel", re.MULTILINE),
}


@dataclass(frozen=True)
class CaptureCounts:
    """Frames that were written, that the kernel saw, and that it dropped before they were read."""

    captured: int
    received: int
    dropped: int

    @property
    def complete(self) -> bool:
        """True where every frame is in the file: only then are counts taken from it exact."""
        return self.dropped == 0 and self.captured >= self.received

    @property
    def missing(self) -> int:
        return max(self.dropped, self.received - self.captured, 0)


class Capture:
    """A running capture; ``path`` is the file it writes."""

    def __init__(self, process: Process, path: Path, log_path: Path) -> None:
        self.path = path
        self.log_path = log_path
        self._process = process

    @classmethod
    def start(
        cls,
        spawner: Spawner,
        interface: str,
        board_address: str,
        path: Path,
        snap_bytes: int = SNAP_BYTES,
    ) -> Capture:
        """Capture the first ``snap_bytes`` of the board's frames; every later frame is seen.

        What tcpdump says goes to a .txt file beside ``path``.
        Raises RigError: tcpdump is missing or may not capture (how to permit it), or its last words.
        """
        log_path = path.with_suffix(".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        for leftover in (path, log_path):
            leftover.unlink(missing_ok=True)
        argv = _command(spawner, interface, board_address, path, snap_bytes)
        process = spawner.spawn(argv, log_path=log_path)
        capture = cls(process, path, log_path)
        try:
            capture._await_listening(interface)
        except BaseException:
            process.kill()
            raise
        return capture

    def check(self) -> None:
        """Raise RigError when it is no longer there."""
        code = self._process.returncode
        if code is not None:
            raise RigError(
                f"The capture (tcpdump, pid {self._process.pid}) {how_ended(code)} too early; "
                f"it said: {self._last_words()}.",
                log=str(self.log_path),
                next_step="start the run again.",
            )

    def stop(self) -> CaptureCounts:
        """End the capture with everything written.

        Raises RigError: it had ended before, it does not end, or it said no counts.
        """
        self.check()
        self._await_quiet()
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except TimeoutError:
            self._process.kill()
            raise RigError(
                f"The capture did not end within {STOP_TIMEOUT_S:.0f} s.", log=str(self.log_path)
            ) from None
        said = self._said()
        found = {name: pattern.search(said) for name, pattern in _COUNTS.items()}
        counts = {name: int(match.group(1)) for name, match in found.items() if match}
        if len(counts) < len(_COUNTS):
            raise RigError(
                f"The capture ended without its counts: {self._last_words()}.", log=str(self.log_path)
            )
        return CaptureCounts(**counts)

    def kill(self) -> None:
        """End it at once, whatever is written."""
        if self._process.returncode is None:
            self._process.kill()

    def _await_listening(self, interface: str) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            ended = self._process.returncode is not None
            if "listening on" in self._said():
                return
            if ended:
                raise self._start_error(interface)
            time.sleep(POLL_S)
        raise RigError(
            f"The capture on {interface} was not up within {START_TIMEOUT_S:.0f} s.", log=str(self.log_path)
        )

    def _start_error(self, interface: str) -> RigError:
        words = self._last_words()
        refused = "permission" in words or "not permitted" in words
        step = PERMIT if refused else "check host.interface in the rack file: ip -br link."
        return RigError(
            f"Capturing on {interface}: tcpdump ended: {words}.", log=str(self.log_path), next_step=step
        )

    def _await_quiet(self) -> None:
        """Wait until nothing more is written: what tcpdump has not read when it is told to end is lost."""
        deadline = time.monotonic() + QUIET_TIMEOUT_S
        size, since = -1, time.monotonic()
        while time.monotonic() < min(deadline, since + QUIET_S):
            now = self.path.stat().st_size if self.path.exists() else 0
            if now != size:
                size, since = now, time.monotonic()
            time.sleep(POLL_S)

    def _said(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def _last_words(self) -> str:
        lines = [line.removeprefix("tcpdump: ").strip(" .") for line in self._said().splitlines()]
        return " ".join([line for line in lines if line][-2:]) or "it said nothing"


def _command(
    spawner: Spawner, interface: str, board_address: str, path: Path, snap_bytes: int
) -> Sequence[str]:
    if spawner.isolated and os.geteuid() != 0:
        # in a user namespace tcpdump insists on becoming another user, and there is none
        module = "hil.network.packet_socket"
        return [sys.executable, "-m", module, interface, board_address, str(path.resolve()), str(snap_bytes)]
    # Without --immediate-mode frames wait in the kernel for up to a second, and are lost at the end.
    options = ["-n", "-p", "--immediate-mode", "-U", "-s", str(snap_bytes), "-B", str(BUFFER_KIB)]
    user = ["-Z", "root"] if os.geteuid() == 0 else []  # else the file would be another user's
    return [
        _program(),
        "-i",
        interface,
        *options,
        *user,
        "-w",
        str(path.resolve()),
        "host",
        board_address,
    ]


def _program() -> str:
    found = shutil.which("tcpdump") or shutil.which("tcpdump", path=SYSTEM_FOLDERS)
    if found is None:
        raise RigError("Starting a capture: tcpdump is not installed.", next_step=INSTALL)
    return found
