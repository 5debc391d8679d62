# SPDX-License-Identifier: Apache-2.0
"""A board that measures `delivery` and `echo` as their firmware does, on paho: for tests of their peers.

python -m tests.network.mqtt_board '<Orders as JSON>': writes the columns as JSON to a file.
"""

from __future__ import annotations

import json
import ssl
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode

OK, TIMEOUT, REFUSED = 0, 1, 2
UNKNOWN = 4  # what became of it in TCP
CONNECT_TIMEOUT_S = 15.0


@dataclass(frozen=True)
class Orders:
    """What a board is told: where the broker is, and the plan."""

    bench: str
    address: str
    port: int
    out: str
    ca_file: str = ""
    bind: str = ""
    run: int = 4711
    count: int = 50
    interval_us: int = 10_000
    qos: int = 1
    payload_bytes: int = 128
    retain: bool = False
    clean_session: bool = True
    timeout_s: float = 5.0

    def words(self) -> list[str]:
        return [sys.executable, "-m", "tests.network.mqtt_board", json.dumps(asdict(self))]


class Board:
    """Sends by its plan, and never waits for an answer."""

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self.topic = f"hil/020000770101/{orders.bench}"
        self.connections = 0
        self.connected = threading.Event()
        self.numbers: dict[int, int] = {}  # of message ids on their way
        rows = orders.count
        self.columns: dict[str, list[int]] = {
            name: [0] * rows for name in ("planned_us", "sent_us", "done_us", "outcome", "connection", "tcp")
        } | {"copies": [0] * rows}
        self.client = mqtt.Client(
            CallbackAPIVersion.VERSION2, client_id="board", clean_session=orders.clean_session
        )
        self.client.reconnect_delay_set(1, 1)
        self.client.max_inflight_messages_set(0)
        self.client.on_connect = self._on_connect
        self.client.on_disconnect = lambda *_: self.connected.clear()
        self.client.on_subscribe = lambda *_: self.connected.set()
        self.client.on_publish = self._on_publish
        self.client.on_message = self._on_message
        if orders.ca_file:
            self.client.tls_set(orders.ca_file, cert_reqs=ssl.CERT_REQUIRED)

    def measure(self) -> None:
        orders, columns = self.orders, self.columns
        self.client.connect(orders.address, orders.port, bind_address=orders.bind)
        self.client.loop_start()
        assert self.connected.wait(CONNECT_TIMEOUT_S), "no connection"
        self.t0 = time.monotonic()
        for number in range(orders.count):
            planned_us = (number + 1) * orders.interval_us
            time.sleep(max(0.0, planned_us / 1e6 - (time.monotonic() - self.t0)))
            columns["planned_us"][number] = planned_us
            columns["connection"][number] = self.connections
            columns["tcp"][number] = UNKNOWN
            self._send(number, planned_us)
        deadline = time.monotonic() + orders.timeout_s
        while time.monotonic() < deadline and any(self._is_open(row) for row in range(orders.count)):
            time.sleep(0.01)
        self.client.disconnect()
        self.client.loop_stop()
        for row in range(orders.count):
            if self._is_open(row):
                columns["outcome"][row] = TIMEOUT

    def _send(self, number: int, planned_us: int) -> None:
        self.columns["sent_us"][number] = self._now_us()
        if not self.client.is_connected() and self.orders.qos == 0:
            self.columns["outcome"][number] = REFUSED
            return
        info = self.client.publish(
            self.topic, self._payload(number, planned_us), self.orders.qos, self.orders.retain
        )
        if info.rc != MQTTErrorCode.MQTT_ERR_SUCCESS and self.orders.qos == 0:
            self.columns["outcome"][number] = REFUSED
            return
        self.numbers[info.mid] = number
        if self.orders.qos == 0 and self.orders.bench == "delivery":
            self.columns["done_us"][number] = self._now_us()

    def _payload(self, number: int, planned_us: int) -> bytes:
        if self.orders.bench == "echo":
            return b"%06d" % number + b"x" * self.orders.payload_bytes
        head = {"n": number, "run": self.orders.run, "planned_us": planned_us, "pad": ""}
        short = len(json.dumps(head, separators=(",", ":")))
        head["pad"] = "x" * (self.orders.payload_bytes - short)
        return json.dumps(head, separators=(",", ":")).encode()

    def _is_open(self, row: int) -> bool:
        return self.columns["outcome"][row] == OK and self.columns["done_us"][row] == 0

    def _now_us(self) -> int:
        return int((time.monotonic() - self.t0) * 1e6)

    def _on_connect(self, *_: Any) -> None:
        self.connections += 1
        if self.orders.bench == "echo":
            self.client.subscribe(f"{self.topic}/back", self.orders.qos)
        else:
            self.connected.set()

    def _on_publish(self, _client: Any, _data: Any, mid: int, *_: Any) -> None:
        deadline = time.monotonic() + 1.0  # publish() returns the id after the answer may have come
        while mid not in self.numbers and time.monotonic() < deadline:
            time.sleep(0.0005)
        if self.orders.bench == "delivery" and mid in self.numbers:
            self.columns["done_us"][self.numbers[mid]] = self._now_us()

    def _on_message(self, _client: Any, _data: Any, message: mqtt.MQTTMessage) -> None:
        number = int(message.payload[:6])
        self.columns["copies"][number] += 1
        self.columns["done_us"][number] = self.columns["done_us"][number] or self._now_us()


if __name__ == "__main__":
    given = Orders(**json.loads(sys.argv[1]))
    board = Board(given)
    board.measure()
    done = Path(given.out)
    done.with_suffix(".part").write_text(json.dumps(board.columns))
    done.with_suffix(".part").rename(done)
