# SPDX-License-Identifier: Apache-2.0
"""A running iperf on the rack's host: ready when it listens, ended by itself, everything bounded in time.

Which iperf this machine has, and its command lines.

What a case of the bench `throughput` asks of the host.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import RigError
from hil.base.process import how_ended
from hil.model import Case
from hil.network.peers.iperf.report import Report, parse_report
from hil.network.process import Process, Spawner

UDP_RATE_BPS = 1_048_576  # iperf's own defaults
TCP_LENGTH_BYTES = 16_384  # ESP-IDF's iperf
UDP_LENGTH_BYTES = 1_470
SLACK_S = 5.0


@dataclass(frozen=True)
class IperfSettings:
    """The parameters of a case, read once. Sizes and rates of 0 are iperf's defaults, see the properties."""

    udp: bool
    board_is_client: bool
    reverse: bool
    rate_kbps: int
    length_bytes: int
    amount_bytes: int
    duration_s: int
    omit_s: int
    interval_ms: int
    peer_window_bytes: int
    peer_mss_bytes: int
    nodelay: bool
    timeout_ms: int

    @classmethod
    def of(cls, case: Case) -> IperfSettings:
        """Read the parameters of a case; the thresholds file has checked their ranges."""

        def number(name: str) -> int:
            return int(case.parameters[name] or 0)

        return cls(
            udp=case.parameters["protocol"] == "udp",
            board_is_client=case.parameters["role"] == "client",
            reverse=bool(number("reverse")),
            rate_kbps=number("rate_kbps"),
            length_bytes=number("length_bytes"),
            amount_bytes=number("amount_bytes"),
            duration_s=number("duration_s"),
            omit_s=number("omit_s"),
            interval_ms=number("interval_ms"),
            peer_window_bytes=number("peer_window_bytes"),
            peer_mss_bytes=number("peer_mss_bytes"),
            nodelay=bool(number("nodelay")),
            timeout_ms=number("timeout_ms"),
        )

    @property
    def board_sends(self) -> bool:
        return self.board_is_client != self.reverse

    @property
    def length(self) -> int:
        """Bytes of a write, or of a datagram."""
        return self.length_bytes or (UDP_LENGTH_BYTES if self.udp else TCP_LENGTH_BYTES)

    @property
    def rate_bps(self) -> int:
        """Bits a second offered; 0 where nothing limits them but TCP."""
        return self.rate_kbps * 1000 or (UDP_RATE_BPS if self.udp else 0)

    @property
    def interval_us(self) -> int:
        return self.interval_ms * 1000

    @property
    def rows_max(self) -> int | None:
        """How many full intervals the test has; None where it lasts until an amount has been sent."""
        return None if self.amount_bytes else self.duration_s * 1000 // self.interval_ms

    @property
    def end_timeout_s(self) -> float:
        """How long the host's iperf may take to end once the board has ended."""
        return self.timeout_ms / 1e3 + SLACK_S


PROGRAM = "iperf"
VERSION_TIMEOUT_S = 5.0
# Of a UDP receiver that a busy machine may keep waiting; the kernel gives what net.core.rmem_max allows.
UDP_BUFFER_BYTES = 4 * 1024 * 1024
INSTALL = "sudo apt-get install iperf (Debian and Ubuntu have it), or build 2.1 from the iperf2 project."

_VERSION = re.compile(r"iperf (?:version )?v?(\d+)\.(\d+)(\S*)")


def require_version() -> str:
    """Return the version of the iperf on PATH. Raises RigError where it is none, or not 2.1 or later 2.x."""
    if shutil.which(PROGRAM) is None:
        raise RigError("Starting iperf: it is not installed.", next_step=INSTALL)
    try:
        done = subprocess.run(
            [PROGRAM, "-v"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RigError(f"Asking iperf for its version: {error}.", next_step=INSTALL) from error
    said = done.stdout + done.stderr
    found = _VERSION.search(said)
    if found is None:
        words = " ".join(said.split())[:80] or "nothing"
        raise RigError(f"Asking iperf for its version: it said {words!r}.", next_step=INSTALL)
    major, minor = int(found.group(1)), int(found.group(2))
    version = f"{major}.{minor}{found.group(3)}"
    if major != 2 or minor < 1:
        raise RigError(
            f"iperf on this machine is {version}; the bench `throughput` needs 2.1 or a later 2.x.",
            next_step=INSTALL,
        )
    return version


def server_command(settings: IperfSettings, address: str, port: int) -> list[str]:
    """Return the host's server, which ends by itself after one client (-P 1)."""
    # a server reads what fits its buffer of a datagram; -R makes it the sender, with its own length
    length = max(settings.length, UDP_LENGTH_BYTES) if settings.udp else settings.length
    sizes = ["-l", str(length)] if settings.udp or settings.reverse else []
    return [PROGRAM, "-s", "-B", address, "-p", str(port), "-P", "1", *_common(settings), *sizes]


def client_command(settings: IperfSettings, address: str, port: int) -> list[str]:
    """Return the host's client of a board that is the server."""
    amount = settings.amount_bytes
    lasting = ["-n", str(amount)] if amount else ["-t", str(settings.duration_s)]
    rate = ["-b", str(settings.rate_bps)] if settings.rate_bps else []
    reverse = ["-R"] if settings.reverse else []
    length = ["-l", str(settings.length)]
    return [PROGRAM, "-c", address, "-p", str(port), *_common(settings), *length, *lasting, *rate, *reverse]


def _common(settings: IperfSettings) -> list[str]:
    # -e with -f b prints whole bytes and intervals to 0.1 ms, -y C (CSV) rounds intervals to 0.1 s
    words = ["-e", "-f", "b", "-i", f"{settings.interval_ms / 1000:g}"]
    if settings.udp:
        words.append("-u")
    window = settings.peer_window_bytes or (UDP_BUFFER_BYTES if settings.udp and settings.board_sends else 0)
    if window:
        words += ["-w", str(window)]
    if settings.peer_mss_bytes and not settings.udp:
        words += ["-M", str(settings.peer_mss_bytes)]
    if settings.nodelay and not settings.udp:
        words.append("-N")
    return words


PORT = 5001
ISOLATED_PORT_ATTEMPTS = 16  # servers at once in one rack's network
FREE_PORT_ATTEMPTS = 3
START_TIMEOUT_S = 5.0
STOP_TIMEOUT_S = 2.0
POLL_S = 0.005


class IperfProcess:
    """A started iperf; ``said`` is what it has printed so far."""

    def __init__(self, process: Process, log_path: Path, settings: IperfSettings, port: int) -> None:
        self.port = port
        self.log_path = log_path
        self._process = process
        self._settings = settings

    @property
    def pid(self) -> int:
        return self._process.pid

    @classmethod
    def start_server(
        cls, spawner: Spawner, settings: IperfSettings, address: str, log_path: Path
    ) -> IperfProcess:
        """Start a server on ``address``; returns when it listens.

        In a rack's own network it listens on port 5001 or the next one, else on a free port.

        Raises RigError: the port is taken (which), or iperf's last words.
        """
        attempts = ISOLATED_PORT_ATTEMPTS if spawner.isolated else FREE_PORT_ATTEMPTS
        for attempt in range(attempts):
            port = PORT + attempt if spawner.isolated else _free_port(settings, address)
            log_path.unlink(missing_ok=True)
            process = spawner.spawn(server_command(settings, address, port), log_path=log_path)
            server = cls(process, log_path, settings, port)
            try:
                if server._listens():
                    return server
            except BaseException:
                process.kill()
                raise
            server.stop()
        raise RigError(
            f"Starting iperf's server on {address}: port {port} is taken.",
            log=str(log_path),
            next_step=f"find who listens there: ss -lntup sport = :{port}",
        )

    @classmethod
    def start_client(
        cls, spawner: Spawner, settings: IperfSettings, board_address: str, port: int, log_path: Path
    ) -> IperfProcess:
        """Start the client of the board's server. Raises RigError."""
        log_path.unlink(missing_ok=True)
        process = spawner.spawn(client_command(settings, board_address, port), log_path=log_path)
        return cls(process, log_path, settings, port)

    def said(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def report(self) -> Report:
        """Read what it has printed so far. Raises RigError quoting what cannot be read."""
        return parse_report(self.said(), self._settings.interval_ms / 1000)

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None

    @property
    def how_it_ended(self) -> str:
        """The words for an end without a result. iperf ends with status 0 whatever happened."""
        code = self._process.returncode or 0
        return how_ended(code) if code else "ended without a result"

    def wait(self, timeout_s: float) -> bool:
        """Wait for its own end; False where it still runs."""
        try:
            self._process.wait(timeout_s)
        except TimeoutError:
            return False
        return True

    def stop(self) -> None:
        """End it; does nothing when it has ended. What it had to say is in its file by then."""
        if not self.ended:
            self._process.kill()  # a UDP server takes its time over SIGTERM
            self.wait(STOP_TIMEOUT_S)

    def _listens(self) -> bool:
        """Wait until it listens; False where the port is somebody else's. Raises RigError."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            ended, said = self.ended, self.said()
            if "Address already in use" in said:
                return False
            if "Server listening on" in said:
                return not self._settings.udp or _sole_owner(self._process.pid, self.port)
            if ended:
                words = " ".join(said.split()) or "nothing"
                raise RigError(f"iperf's server did not start; it said: {words}.", log=str(self.log_path))
            time.sleep(POLL_S)
        raise RigError(
            f"iperf's server did not listen within {START_TIMEOUT_S:.0f} s.", log=str(self.log_path)
        )


def _sole_owner(pid: int, port: int) -> bool:
    """False where another UDP socket is bound to the port too: iperf shares it silently."""
    lines: Sequence[str] = ()
    with contextlib.suppress(OSError):  # it has ended, which shows soon enough
        lines = Path(f"/proc/{pid}/net/udp").read_text().splitlines()[1:]
    ports = [int(line.split()[1].rpartition(":")[2], 16) for line in lines]
    return ports.count(port) <= 1


def _free_port(settings: IperfSettings, address: str) -> int:
    kind = socket.SOCK_DGRAM if settings.udp else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, kind) as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            raise RigError(
                f"Starting iperf's server on {address}: {error.strerror}.",
                next_step="check host.address in the rack file: ip -br address.",
            ) from error
        return int(probe.getsockname()[1])
