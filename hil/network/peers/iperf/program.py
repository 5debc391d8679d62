"""Which iperf this machine has, and its command lines."""

from __future__ import annotations

import re
import shutil
import subprocess

from hil.base.errors import RigError
from hil.network.peers.iperf.settings import UDP_LENGTH_BYTES, Settings

PROGRAM = "iperf"
VERSION_TIMEOUT_S = 5.0
# Of a UDP receiver that a busy machine may keep waiting; the kernel gives what net.core.rmem_max allows.
UDP_BUFFER_BYTES = 4 * 1024 * 1024
INSTALL = (
    "sudo apt-get install iperf (Debian 12 and Ubuntu 24.04 have 2.1), or build 2.1 from the iperf2 project."
)

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


def server_command(settings: Settings, address: str, port: int) -> list[str]:
    """Return the host's server, which ends by itself after one client (-P 1)."""
    # a server reads what fits its buffer of a datagram; -R makes it the sender, with its own length
    length = max(settings.length, UDP_LENGTH_BYTES) if settings.udp else settings.length
    sizes = ["-l", str(length)] if settings.udp or settings.reverse else []
    return [PROGRAM, "-s", "-B", address, "-p", str(port), "-P", "1", *_common(settings), *sizes]


def client_command(settings: Settings, address: str, port: int) -> list[str]:
    """Return the host's client of a board that is the server."""
    amount = settings.amount_bytes
    lasting = ["-n", str(amount)] if amount else ["-t", str(settings.duration_s)]
    rate = ["-b", str(settings.rate_bps)] if settings.rate_bps else []
    reverse = ["-R"] if settings.reverse else []
    length = ["-l", str(settings.length)]
    return [PROGRAM, "-c", address, "-p", str(port), *_common(settings), *length, *lasting, *rate, *reverse]


def _common(settings: Settings) -> list[str]:
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
