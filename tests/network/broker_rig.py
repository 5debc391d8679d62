# SPDX-License-Identifier: Apache-2.0
"""What the broker's tests share: a broker with options, and a client that answers when told to."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hil.network import mqtt_packets as mqtt
from hil.network.broker import Broker, BrokerOptions, SlowDisk
from hil.network.certificates import Certificates
from hil.network.process import LocalSpawner

LOOPBACK = "127.0.0.1"
TIMEOUT_S = 15.0
DB_BYTES = 200_000
SAVES = 3


@contextmanager
def running_broker(
    folder: Path,
    certificates: Certificates,
    options: BrokerOptions | None = None,
    *,
    slow_disk: SlowDisk | None = None,
    key_log: Path | None = None,
) -> Iterator[Broker]:
    """A broker of this machine that is stopped at the end."""
    place = (LocalSpawner(), LOOPBACK, folder / "broker", certificates, options or BrokerOptions())
    broker = Broker.start(*place, key_log=key_log, slow_disk=slow_disk)
    try:
        yield broker
    finally:
        broker.stop()


class Client:
    """A client of the plain listener. It acknowledges nothing by itself; received() has what came so far."""

    def __init__(self, broker: Broker, client_id: str = "", *, clean_session: bool = True) -> None:
        self._packet_id = 0
        self._came: list[mqtt.Packet] = []
        name = client_id or f"test-{os.getpid()}-{id(self)}"
        place = (broker.address, broker.ports.tcp)
        self.socket = mqtt.connect(*place, name, TIMEOUT_S, clean_session=clean_session)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def subscribe(self, topic: str, qos: int = 1) -> None:
        self.socket.sendall(mqtt.subscribe_packet(1, topic, qos=qos))
        self._read_until(mqtt.SUBACK)

    def send(self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False) -> None:
        self._packet_id += 1
        packet = mqtt.publish_packet(topic, payload, packet_id=self._packet_id, qos=qos, retain=retain)
        self.socket.sendall(packet)

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> None:
        """Publish with QoS 1 and wait for the acknowledgement."""
        self.send(topic, payload, retain=retain)
        self._read_until(mqtt.PUBACK)

    def received(self, *, acknowledge: bool = False) -> list[bytes]:
        """Return what came up to the answer to a ping, and was not returned before."""
        self.socket.sendall(mqtt.PINGREQ_BYTES)
        self._read_until(mqtt.PINGRESP)
        came, self._came = self._came, []
        for packet in came:
            if acknowledge and packet.qos:
                self.socket.sendall(bytes([0x40, 2]) + packet.id.to_bytes(2, "big"))
        return [packet.payload for packet in came]

    def _read_until(self, packet_type: int) -> None:
        while (packet := mqtt.read_packet(self.socket)).type != packet_type:
            if packet.type == mqtt.PUBLISH:
                self._came.append(packet)

    def received_all(self) -> list[bytes]:
        """Acknowledge what comes until nothing more comes."""
        payloads: list[bytes] = []
        while more := self.received(acknowledge=True):
            payloads += more
        return payloads

    def leave(self) -> None:
        """Disconnect, and wait until the broker has closed its end."""
        self.socket.sendall(mqtt.DISCONNECT_BYTES)
        while self.socket.recv(4096):
            pass
        self.socket.close()

    def segments_in(self) -> int:
        """Return how many TCP segments with data came (tcpi_data_segs_in of struct tcp_info)."""
        info = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        return int.from_bytes(info[152:156], "little")


def seconds_of_saves(folder: Path, certificates: Certificates, slow_disk: SlowDisk | None) -> float:
    """Return how long a broker that holds DB_BYTES takes for a few messages, each of which it saves."""
    options = BrokerOptions(persistence="each")
    with running_broker(folder, certificates, options, slow_disk=slow_disk) as broker:
        with Client(broker) as client:
            client.publish("big", bytes(DB_BYTES), retain=True)
            client.received()
            saved_before = broker.log_path.read_text().count("Saving in-memory database")
            began = time.monotonic()
            for number in range(SAVES):
                client.publish("small", b"%d" % number, retain=True)
                client.received()
            took_s = time.monotonic() - began
        saved = broker.log_path.read_text().count("Saving in-memory database") - saved_before
    return took_s / saved
