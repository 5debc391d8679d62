# SPDX-License-Identifier: Apache-2.0
"""What crosses interfaces of the rack's host, written by dumpcap into a .pcapng file."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import RigError
from hil.base.process import SYSTEM_FOLDERS, find_program, how_ended, proc_stat
from hil.network.lifeline import Lifeline
from hil.network.process import Process, Spawner

PROGRAM = "dumpcap"
START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 5.0
# The kernel hands frames over in blocks, a block that is not full after 0.25 s at the latest (dumpcap asks
# libpcap for that), and dumpcap reads no further once it is told to end.
HAND_OVER_S = 0.35
READ_TIMEOUT_S = 10.0
IDLE_POLLS = 3
POLL_S = 0.005
BUFFER_MIB = 16
QUEUE_FRAMES = 4_000_000  # dumpcap's own queue, which it has where it reads several interfaces
QUEUE_BYTES = 256 * 1024 * 1024
SNAP_BYTES = 128  # Ethernet, IP and TCP headers with all options, or iperf's UDP header
INSTALL = "sudo apt-get install wireshark-common"
PERMIT = "sudo setcap cap_net_raw,cap_net_admin=eip $(command -v dumpcap)"
JOIN_GROUP = "sudo usermod --append --groups wireshark $(id -un), then log in again."

_CAPTURED = re.compile(r"^Packets captured: (\d+)", re.MULTILINE)
_INTERFACE = re.compile(r"^Packets received/dropped on interface '.*': (\d+)/(\d+) \(", re.MULTILINE)


@dataclass(frozen=True)
class CaptureCounts:
    """Frames of all interfaces: written, read from the kernel, and dropped before they were written."""

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

    def __init__(
        self,
        process: Process,
        interfaces: Sequence[str],
        path: Path,
        log_path: Path,
        lifeline: Lifeline | None = None,
    ) -> None:
        self.path = path
        self.log_path = log_path
        self._process = process
        self._interfaces = tuple(interfaces)
        self._lifeline = lifeline

    @classmethod
    def start(
        cls,
        spawner: Spawner,
        interfaces: Sequence[str],
        path: Path,
        *,
        capture_filter: str,
        snap_bytes: int = SNAP_BYTES,
        buffer_mib: int = BUFFER_MIB,
    ) -> Capture:
        """Capture the first ``snap_bytes`` of the frames that pass; every later frame is seen.

        ``capture_filter`` is libpcap's (pcap-filter(7)), "" for everything; ``buffer_mib`` is the kernel's
        for each interface. What dumpcap says goes to a .txt file beside ``path``.
        Raises RigError: dumpcap is missing or may not capture (how to permit it), or its last words.
        """
        log_path = path.with_suffix(".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        for leftover in (path, log_path):
            leftover.unlink(missing_ok=True)
        argv = _command(interfaces, path, capture_filter, snap_bytes, buffer_mib)
        process = spawner.spawn(argv, log_path=log_path)
        lifeline = None if spawner.isolated else Lifeline(process.pid, PROGRAM)
        capture = cls(process, interfaces, path, log_path, lifeline)
        try:
            capture._await_listening()
        except BaseException:
            capture.kill()
            raise
        return capture

    def check(self) -> None:
        """Raise RigError when it is no longer there."""
        code = self._process.returncode
        if code is not None:
            raise RigError(
                f"The capture (dumpcap, pid {self._process.pid}) {how_ended(code)} too early; "
                f"it said: {self._last_words()}.",
                log=str(self.log_path),
                next_step="start the run again.",
            )

    def stop(self) -> CaptureCounts:
        """End the capture with everything written that had come before this call.

        Raises RigError: it had ended before, it cannot keep up, it does not end, or it said no counts.
        """
        self.check()
        self._await_read()
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except TimeoutError:
            self.kill()
            raise RigError(
                f"The capture did not end within {STOP_TIMEOUT_S:.0f} s.", log=str(self.log_path)
            ) from None
        self._let_go()
        return self._counts()

    def kill(self) -> None:
        """End it at once, whatever is written."""
        if self._process.returncode is None:
            self._process.kill()
        self._let_go()

    def _let_go(self) -> None:
        if self._lifeline:
            self._lifeline.close()
            self._lifeline = None

    def _counts(self) -> CaptureCounts:
        said = self._said()
        captured = _CAPTURED.search(said)
        found = _INTERFACE.findall(said)
        if captured is None or len(found) < len(self._interfaces):
            raise RigError(
                f"The capture ended without its counts: {self._last_words()}.", log=str(self.log_path)
            )
        received, dropped = (sum(int(counts[index]) for counts in found) for index in (0, 1))
        return CaptureCounts(int(captured.group(1)), received, dropped)

    def _await_listening(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            ended = self._process.returncode is not None
            if "\nFile: " in self._said():  # every interface is open by then
                return
            if ended:
                raise self._start_error()
            time.sleep(POLL_S)
        raise RigError(
            f"The capture on {self._where} was not up within {START_TIMEOUT_S:.0f} s.", log=str(self.log_path)
        )

    def _start_error(self) -> RigError:
        words = self._last_words()
        said = self._said()
        if "permission" in said or "not permitted" in said:
            step = PERMIT
        elif "capture filter" in said:
            step = "mend the filter: man pcap-filter."
        else:
            step = "check host.interface and capture.access_point in the rack file: ip -br link."
        return RigError(
            f"Capturing on {self._where}: dumpcap ended: {words}.", log=str(self.log_path), next_step=step
        )

    @property
    def _where(self) -> str:
        return " and ".join(self._interfaces)

    def _await_read(self) -> None:
        """Wait until dumpcap has read all that the kernel held: it sleeps only where nothing is left."""
        time.sleep(HAND_OVER_S)
        deadline = time.monotonic() + READ_TIMEOUT_S
        idle = 0
        while idle < IDLE_POLLS:
            if time.monotonic() > deadline:
                self.kill()
                raise RigError(
                    f"The capture on {self._where} does not keep up: dumpcap is "
                    f"{READ_TIMEOUT_S:.0f} s behind.",
                    log=str(self.log_path),
                    next_step="end other work on the rack's host, then run again.",
                )
            idle = idle + 1 if _sleeps(self._process.pid) else 0
            time.sleep(POLL_S)

    def _said(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def _last_words(self) -> str:
        """Return dumpcap's complaint in one line; advice follows it in a paragraph of its own."""
        said = self._said()
        complaint = said.partition("dumpcap: ")[2].partition("\n\n")[0] or said
        lines = [line.strip(" .") for line in complaint.splitlines()]
        return " ".join([line for line in lines if line][-2:]) or "it said nothing"


def _sleeps(pid: int) -> bool:
    """Return whether no thread of a process has anything to do (proc(5): state S); True where it is gone."""
    try:
        return all(
            proc_stat(f"{pid}/task/{one.name}")[0] in "SZ" for one in Path(f"/proc/{pid}/task").glob("*")
        )
    except OSError:  # a thread has just ended
        return False


def _command(
    interfaces: Sequence[str], path: Path, capture_filter: str, snap_bytes: int, buffer_mib: int
) -> list[str]:
    options = ["-q", "-p", "-s", str(snap_bytes), "-B", str(buffer_mib)]  # of every interface that follows
    if capture_filter:
        options += ["-f", capture_filter]
    if len(interfaces) > 1:
        options += ["-N", str(QUEUE_FRAMES), "-C", str(QUEUE_BYTES)]
    words = [word for interface in interfaces for word in ("-i", interface)]
    return [_program(), *options, *words, "-w", str(path.resolve())]


def _program() -> str:
    found = find_program(PROGRAM)
    if found is not None:
        return found
    for folder in SYSTEM_FOLDERS.split(os.pathsep):
        path = Path(folder, PROGRAM)
        if path.exists():
            raise RigError(f"Starting a capture: this user may not run {path}.", next_step=JOIN_GROUP)
    raise RigError("Starting a capture: dumpcap is not installed.", next_step=INSTALL)
