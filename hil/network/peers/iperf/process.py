"""A running iperf on the rack's host: ready when it listens, ended by itself, everything bounded in time."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from hil.base.errors import RigError
from hil.network.peers.iperf.program import client_command, server_command
from hil.network.peers.iperf.report import Report, parse_report
from hil.network.peers.iperf.settings import Settings
from hil.network.process import Process, Spawner, how_ended

PORT = 5001
ISOLATED_PORT_ATTEMPTS = 16  # servers at once in one rack's network
FREE_PORT_ATTEMPTS = 3
START_TIMEOUT_S = 5.0
STOP_TIMEOUT_S = 2.0
POLL_S = 0.005


class IperfProcess:
    """A started iperf; ``said`` is what it has printed so far."""

    def __init__(self, process: Process, log_path: Path, settings: Settings, port: int) -> None:
        self.port = port
        self.log_path = log_path
        self._process = process
        self._settings = settings

    @classmethod
    def start_server(cls, spawner: Spawner, settings: Settings, address: str, log_path: Path) -> IperfProcess:
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
        cls, spawner: Spawner, settings: Settings, board_address: str, port: int, log_path: Path
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


def _free_port(settings: Settings, address: str) -> int:
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
