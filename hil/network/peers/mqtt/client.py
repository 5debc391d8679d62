# SPDX-License-Identifier: Apache-2.0
"""The MQTT client of subscriber and echo: one thread, a session that outlives a connection, no patience.

paho's loop runs in the thread that handles the messages, so that no message waits for another thread.
"""

from __future__ import annotations

import argparse
import platform
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode

from hil.network.peers.gateway.lines import LineWriter

SUBSCRIBED, FIRST, FAILED, ENDED = "subscribed", "first", "error", "end"
QOS = 2  # the broker lowers it to what each message was sent with
KEEPALIVE_S = 60
LOOP_S = 0.5
AGAIN_S = 0.05  # between attempts to reach a broker that is away
STATUS_FAILED = 3
_REFUSED = 128  # reason codes from here on are failures

Handle = Callable[[mqtt.Client, mqtt.MQTTMessage], None]


class Peer:
    """Subscribes to ``topic`` and hands each message to ``handle``; comes back when it lost the broker."""

    def __init__(self, arguments: argparse.Namespace, lines: LineWriter, handle: Handle) -> None:
        self._server = (str(arguments.address), int(arguments.port))
        self._topic = str(arguments.topic)
        self._nodelay = bool(arguments.nodelay)
        self._lines = lines
        self._handle = handle
        self._connections = 0
        self.messages = 0
        self._client = mqtt.Client(
            CallbackAPIVersion.VERSION2, client_id=str(arguments.client_id), clean_session=False
        )
        self._client.max_inflight_messages_set(0)  # nothing waits here for what was sent before
        self._client.on_socket_open = self._on_socket_open
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_message = self._on_message

    def run(self) -> None:
        """Serve until a signal ends it. Raises what ``handle`` raises, RuntimeError where it is refused."""
        while True:
            try:
                self._client.connect(*self._server, KEEPALIVE_S)
            except OSError:
                time.sleep(AGAIN_S)
                continue
            while self._client.loop(LOOP_S) == MQTTErrorCode.MQTT_ERR_SUCCESS:
                pass

    def _on_socket_open(self, client: mqtt.Client, userdata: Any, sock: Any) -> None:
        del client, userdata
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(self._nodelay))

    def _on_connect(self, client: mqtt.Client, userdata: Any, flags: Any, reason: Any, more: Any) -> None:
        del userdata, flags, more
        if reason.is_failure:
            raise RuntimeError(f"the broker refused the connection: {reason}")
        client.subscribe(self._topic, QOS)

    def _on_subscribe(self, client: mqtt.Client, userdata: Any, mid: int, reasons: Any, more: Any) -> None:
        del client, userdata, mid, more
        if any(reason.value >= _REFUSED for reason in reasons):
            raise RuntimeError(f"the broker refused the subscription to {self._topic}")
        self._connections += 1
        self._lines.write(SUBSCRIBED, connection=self._connections, wall_ns=time.time_ns())

    def _on_message(self, client: mqtt.Client, userdata: Any, message: mqtt.MQTTMessage) -> None:
        del userdata
        self.messages += 1
        if self.messages == 1:
            self._lines.write(FIRST, wall_ns=time.time_ns())
        self._handle(client, message)


def arguments_of(description: str) -> argparse.ArgumentParser:
    """Return a parser of what subscriber and echo have in common."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--client-id", required=True)
    parser.add_argument("--nodelay", type=int, choices=(0, 1), default=1)
    parser.add_argument("--lines", type=Path, required=True, help="JSON lines of what happens")
    return parser


def serve(arguments: argparse.Namespace, handle: Handle) -> int:
    """Run a peer until SIGTERM; return the program's exit status. What ends it early is its last line."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with LineWriter(arguments.lines) as lines:
        lines.write("start", paho_version=version("paho-mqtt"), python=platform.python_version())
        peer = Peer(arguments, lines, handle)
        try:
            peer.run()
        except (OSError, RuntimeError, ValueError) as error:
            lines.write(FAILED, sentence=str(error))
            print(error, file=sys.stderr)
            return STATUS_FAILED
        finally:
            lines.write(ENDED, messages=peer.messages)
    return 0


def words(**options: object) -> Sequence[str]:
    """Return options of these programs as words of a command line."""
    return [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
