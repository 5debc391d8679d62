# SPDX-License-Identifier: Apache-2.0
"""A client that publishes as fast as the broker takes it, within bounds of messages and seconds.

    python -m hil.network.flood ADDRESS PORT --messages N --seconds S --payload-bytes B

QoS 0, on a topic of its own that nobody subscribes to: what it costs is the broker's CPU time, its sockets
and its log, where each message is a line. Prints one line of JSON when it ends: FloodCounts.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hil.base.errors import RigError
from hil.base.process import how_ended
from hil.network import mqtt_packets as mqtt
from hil.network.process import Process, Spawner

TOPIC = "hil/flood"
MESSAGES_MAX = 1_000_000  # a line each in the broker's log: some 130 MB
BUFFER_BYTES = 65536
SEND_TIMEOUT_S = 0.05
CONNECT_TIMEOUT_S = 10.0
LANDING_TIMEOUT_S = 10.0  # until the broker has read what was sent
READY = "flooding"
DONE_TIMEOUT_S = 60.0
POLL_S = 0.005


@dataclass(frozen=True)
class FloodCounts:
    """``sent_count`` messages were sent, and all read by the broker where ``landed``; ``duration_us`` is from
    the first message to the broker's word that it has read the last one."""

    sent_count: int
    payload_bytes: int
    duration_us: int
    landed: bool


class Flood:
    """A running flood."""

    def __init__(self, process: Process, log_path: Path) -> None:
        self._process = process
        self.log_path = log_path

    @classmethod
    def start(
        cls,
        spawner: Spawner,
        address: str,
        port: int,
        *,
        seconds: float,
        messages: int = MESSAGES_MAX,
        payload_bytes: int = 128,
        log_path: Path,
    ) -> Flood:
        """Connect to the broker's plain listener and publish until ``seconds`` have passed or ``messages``
        are sent; returns when it publishes. Raises RigError: the broker is not there, or refuses.
        """
        log_path.unlink(missing_ok=True)
        bounds = [
            "--messages",
            str(messages),
            "--seconds",
            str(seconds),
            "--payload-bytes",
            str(payload_bytes),
        ]
        argv = [sys.executable, "-m", "hil.network.flood", address, str(port), *bounds]
        flood = cls(spawner.spawn(argv, log_path=log_path), log_path)
        try:
            flood._await_ready()
        except BaseException:
            flood.kill()
            raise
        return flood

    def stop(self) -> FloodCounts:
        """End it where it still publishes, and return what it did. Raises RigError where it failed."""
        self._process.terminate()
        return self._await_counts(2 * LANDING_TIMEOUT_S)

    def stop_when_done(self) -> FloodCounts:
        """Wait until it has come to one of its bounds, and return what it did. Raises RigError."""
        return self._await_counts(DONE_TIMEOUT_S + 2 * LANDING_TIMEOUT_S)

    def _await_counts(self, timeout_s: float) -> FloodCounts:
        try:
            code = self._process.wait(timeout_s)
        except TimeoutError:
            self._process.kill()
            raise RigError(
                f"The flood (pid {self._process.pid}) did not end within {timeout_s:.0f} s.",
                log=str(self.log_path),
            ) from None
        lines = self._lines()
        if code != 0 or not lines[-1].startswith("{"):
            raise self._failed(code)
        return FloodCounts(**json.loads(lines[-1]))

    def kill(self) -> None:
        """End it at once, whatever it has counted."""
        self._process.kill()

    def _await_ready(self) -> None:
        deadline = time.monotonic() + CONNECT_TIMEOUT_S * 2
        while READY not in self._lines():
            code = self._process.returncode
            if code is not None and READY not in self._lines():
                raise self._failed(code)
            if time.monotonic() > deadline:
                raise RigError("The flood did not begin in time.", log=str(self.log_path))
            time.sleep(POLL_S)

    def _lines(self) -> list[str]:
        return self.log_path.read_text(errors="replace").splitlines() if self.log_path.exists() else []

    def _failed(self, code: int) -> RigError:
        words = self._lines()[-1:] or ["it said nothing"]
        return RigError(
            f"The flood (pid {self._process.pid}) {how_ended(code)}: {words[0]}.",
            log=str(self.log_path),
            next_step="see in the log whether the broker was there.",
        )


def flood(
    connection: socket.socket, messages: int, seconds: float, payload_bytes: int, ended: threading.Event
) -> FloodCounts:
    """Publish over a connection that was greeted, until a bound or ``ended``. Raises OSError, EOFError."""
    packet = mqtt.publish_packet(TOPIC, bytes(payload_bytes))
    buffer = memoryview(packet * (BUFFER_BYTES // len(packet) + 1))
    began, sent_bytes, left_bytes = time.monotonic(), 0, messages * len(packet)
    connection.settimeout(SEND_TIMEOUT_S)
    while left_bytes and not ended.is_set() and time.monotonic() - began < seconds:
        begun_bytes = sent_bytes % len(packet)
        sent = _send_some(connection, buffer[begun_bytes : begun_bytes + left_bytes])
        sent_bytes, left_bytes = sent_bytes + sent, left_bytes - sent
    begun_bytes = sent_bytes % len(packet)
    rest = bytes(buffer[begun_bytes : len(packet)]) if begun_bytes else b""
    landed = _land(connection, rest)
    duration_us = round((time.monotonic() - began) * 1e6)
    return FloodCounts((sent_bytes + len(rest)) // len(packet), payload_bytes, duration_us, landed)


def _send_some(connection: socket.socket, data: memoryview) -> int:
    """Send what the broker takes now; return how many bytes that were."""
    try:
        return connection.send(data)
    except TimeoutError:
        return 0  # it takes nothing for the moment


def _land(connection: socket.socket, rest: bytes) -> bool:
    """Complete the last message and say whether the broker answered a ping: it reads in order, so it has read
    everything before."""
    connection.settimeout(LANDING_TIMEOUT_S)
    try:
        connection.sendall(rest + mqtt.PINGREQ_BYTES)
        while mqtt.read_packet(connection).type != mqtt.PINGRESP:
            pass
        connection.sendall(mqtt.DISCONNECT_BYTES)
    except TimeoutError:
        return False
    return True


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("--messages", type=int, default=MESSAGES_MAX)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--payload-bytes", type=int, default=128)
    given = parser.parse_args(arguments)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    client_id = f"hil-flood-{os.getpid()}"
    with mqtt.connect(given.address, given.port, client_id, CONNECT_TIMEOUT_S) as connection:
        print(READY, flush=True)
        counts = flood(connection, given.messages, given.seconds, given.payload_bytes, ended)
    print(json.dumps(asdict(counts)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
