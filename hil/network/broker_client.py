# SPDX-License-Identifier: Apache-2.0
"""What the rack's host asks of its broker as a client, in the rack's network.

    python -m hil.network.broker_client dropped ADDRESS PORT
    python -m hil.network.broker_client take_over ADDRESS PORT CLIENT_ID 0|1

dropped: print how many messages the broker dropped, as its next report has it. take_over: connect with the
id of another client, which the broker then disconnects, and leave; the last is that client's clean session.

So one client's connection to the broker is broken from the broker's side; the kernel can reset it, too.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.process import find_program
from hil.network import mqtt_packets as mqtt
from hil.network.process import Spawner, run_to_end

UPTIME = "$SYS/broker/uptime"  # reported each time, the others only where they have changed
DROPPED = "$SYS/broker/publish/messages/dropped"
TAKE_OVER_KEEP_ALIVE_S = (
    65_533  # nobody else's: by it the broker's log tells the run's own doing from a second host's
)
TIMEOUT_S = 8.0  # the broker reports every two seconds where it is told one


def ask_dropped(spawner: Spawner, address: str, port: int, log_path: Path) -> int | None:
    """Return what ``dropped`` prints, None where the broker does not report in time."""
    argv = [sys.executable, "-m", "hil.network.broker_client", "dropped", address, str(port)]
    status, said = run_to_end(spawner, argv, 2 * TIMEOUT_S, log_path=log_path)
    return int(said) if status == 0 and said.strip().isdigit() else None


def read_dropped(address: str, port: int) -> int:
    """Wait for the broker's next report and return its count of drops. Raises OSError, EOFError."""
    connection = mqtt.connect(address, port, f"hil-statistics-{os.getpid()}", TIMEOUT_S)
    with connection:
        connection.sendall(mqtt.subscribe_packet(1, UPTIME))
        _await_publish(connection, retained=False)
        connection.sendall(mqtt.subscribe_packet(2, DROPPED))  # its report is whole: one turn of its loop
        count = int(_await_publish(connection, retained=True))
        connection.sendall(mqtt.DISCONNECT_BYTES)
    return count


def take_over(address: str, port: int, client_id: str, *, clean_session: bool) -> None:
    """Make the broker close the connection of ``client_id``. Raises OSError, EOFError."""
    connection = mqtt.connect(
        address, port, client_id, TIMEOUT_S, clean_session=clean_session, keep_alive_s=TAKE_OVER_KEEP_ALIVE_S
    )
    with connection:
        connection.sendall(mqtt.DISCONNECT_BYTES)


def _await_publish(connection: socket.socket, *, retained: bool) -> bytes:
    while True:
        packet = mqtt.read_packet(connection)
        if packet.type == mqtt.PUBLISH and packet.retained == retained:
            return packet.payload


def main(arguments: list[str]) -> int:
    command, address, port, *rest = arguments
    if command == "dropped":
        print(read_dropped(address, int(port)))
    else:
        take_over(address, int(port), rest[0], clean_session=rest[1] == "1")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))


CUT_TIMEOUT_S = 10.0

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
    program = find_program("ss")
    if program is None:
        return 0
    sources = " or ".join(f"sport = :{port}" for port in ports)
    argv = [program, "-K", "-H", "-t", "-n", f"dst {client} and ( {sources} )"]
    _, said = run_to_end(spawner, argv, CUT_TIMEOUT_S, log_path=log_path)
    return sum(client in line for line in said.splitlines())


def disconnect_by_id(spawner: Spawner, client: Client, address: str, port: int, log_path: Path) -> bool:
    """Connect with the client's id for a moment: the broker then closes the client's connection (a FIN).

    A client that keeps its session gets it back; messages that were on their way to it come twice.
    """
    argv = [sys.executable, "-m", "hil.network.broker_client", "take_over", address, str(port)]
    argv += [client.client_id, "1" if client.clean_session else "0"]
    return run_to_end(spawner, argv, CUT_TIMEOUT_S, log_path=log_path)[0] == 0


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
