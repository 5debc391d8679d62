"""What the rack's host asks of its broker as a client, in the rack's network.

    python -m hil.network.broker_client dropped ADDRESS PORT
    python -m hil.network.broker_client take_over ADDRESS PORT CLIENT_ID 0|1

dropped: print how many messages the broker dropped, as its next report has it. take_over: connect with the
id of another client, which the broker then disconnects, and leave; the last is that client's clean session.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from hil.network import mqtt_packets as mqtt
from hil.network.process import Spawner, run_to_end

UPTIME = "$SYS/broker/uptime"  # reported each time, the others only where they have changed
DROPPED = "$SYS/broker/publish/messages/dropped"
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
    with mqtt.connect(address, port, client_id, TIMEOUT_S, clean_session=clean_session) as connection:
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
