"""Break one client's connection to the broker from the broker's side."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.network.process import Spawner, run_to_end

TIMEOUT_S = 10.0
SYSTEM_FOLDERS = "/usr/sbin:/usr/local/sbin:/sbin"

_CONNECTED = re.compile(r"New client connected from (\S+):(\d+) as (\S+) \(p\d, c([01]),")


@dataclass(frozen=True)
class Client:
    """Who is connected, as the broker's log has it."""

    address: str
    port: int
    client_id: str
    clean_session: bool


def reset_connections(spawner: Spawner, client: str, ports: Sequence[int], log_path: Path) -> int:
    """Have the kernel reset the connections of ``client`` (an IPv4 address, or address:port) to the broker's
    ``ports``; return how many there were. 0 also where it may not, cannot (CONFIG_INET_DIAG_DESTROY), or
    where ss is missing (package iproute2). Both ends learn it at once, the client by a RST.
    """
    program = shutil.which("ss") or shutil.which("ss", path=SYSTEM_FOLDERS)
    if program is None:
        return 0
    sources = " or ".join(f"sport = :{port}" for port in ports)
    argv = [program, "-K", "-H", "-t", "-n", f"dst {client} and ( {sources} )"]
    _, said = run_to_end(spawner, argv, TIMEOUT_S, log_path=log_path)
    return sum(client in line for line in said.splitlines())


def take_over(spawner: Spawner, client: Client, address: str, port: int, log_path: Path) -> bool:
    """Connect with the client's id for a moment: the broker then closes the client's connection (a FIN).

    A client that keeps its session gets it back; messages that were on their way to it come twice.
    """
    argv = [sys.executable, "-m", "hil.network.broker_client", "take_over", address, str(port)]
    argv += [client.client_id, "1" if client.clean_session else "0"]
    return run_to_end(spawner, argv, TIMEOUT_S, log_path=log_path)[0] == 0


def find_client(log: str, client: str) -> Client | None:
    """Return who is connected from ``client`` (address or address:port) by the broker's log, if anyone."""
    found = None
    for line in log.splitlines():
        match = _CONNECTED.search(line)
        if match:
            address, port, client_id, clean = match.groups()
            if client in (address, f"{address}:{port}"):
                found = Client(address, int(port), client_id, clean == "1")
            elif found and found.client_id == client_id:
                found = None
        elif found and f": Client {found.client_id} " in line:  # disconnected, closed its connection, …
            found = None
    return found
