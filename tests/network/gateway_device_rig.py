# SPDX-License-Identifier: Apache-2.0
"""The real firmware as a gateway, with a real broker, and a server or a requester that misbehaves."""

from __future__ import annotations

import json
import os
import queue
import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from hil.model import Case, Scalar, Series
from hil.network.broker import Broker
from hil.network.certificates import Certificates
from hil.network.name_server import PEER_NAME
from hil.network.peers.companion import Observed
from hil.network.peers.gateway.companion import GatewayCompanion
from hil.network.peers.gateway.plan import Topics, format_request_id
from hil.session import AgentSession
from hil.wire import Note
from tests.firmware.case_defaults import case_defaults
from tests.network import places
from tests.network.gateway_rig import Bench
from tests.session.agent_process import AgentProcess

HOST = "127.10.0.1"  # not 127.0.0.1, where a name server may be at work already
TOPICS = Topics("hil/240ac4000001")  # the firmware's own MAC address where the board tells it none
BOARD = replace(places.BOARD, mac="24:0a:c4:00:00:01")
READY_S = 10.0
RUN_S = 45.0

PARAMETERS = case_defaults(
    "http_gateway", http="http", probe_interval_ms=0, reads=2, reads_after_reconnect=2, timeout_ms=5000
)


@dataclass(frozen=True)
class Lab:
    """What every case here shares."""

    elf: Path
    broker: Broker
    certificates: Certificates

    def login(self) -> dict[str, str | int]:
        """What a board is told before each run, but for the peer."""
        made = self.certificates
        pem = {"ca_pem": made.ca_pem, "client_cert_pem": made.client_cert_pem}
        return {**pem, "client_key_pem": made.client_key_pem, **self.broker.provision()}

    @contextmanager
    def session(self, **told: str | int) -> Iterator[AgentSession]:
        """A board that has been told everything, and ``told`` instead or besides."""
        process = AgentProcess(self.elf)
        try:
            session = AgentSession(process, BOARD.id)
            session.wait_ready(READY_S)
            session.provision({**self.login(), **told})
            session.network_up()
            yield session
        finally:
            assert "Sanitizer" not in process.stop()

    def measure(self, folder: Path, **changes: Scalar) -> tuple[Series, Observed, list[Note]]:
        """One case with the real requester and the real server, from start to finish."""
        case = Case("http_gateway", {**PARAMETERS, **changes})
        place = Bench(self.broker, self.certificates).place(folder)
        here = {"board": BOARD, "board_address": HOST, "host_address": HOST}
        companion = GatewayCompanion(replace(place, case=case, **here))
        notes: list[Note] = []
        try:
            with self.session(**companion.start()) as session:
                series = session.run_case(case, timeout_s=RUN_S, on_note=notes.append)
            return series, companion.finish(series), notes
        finally:
            companion.stop()

    @contextmanager
    def asked(
        self, server: Server, *, names: str = "", **changes: Scalar
    ) -> Iterator[tuple[Asker, Future[Series]]]:
        """A board at work with ``server``, and somebody who may ask it anything, once it is ready.

        ``names`` is the address of a name server.
        """
        case = Case("http_gateway", {**PARAMETERS, **changes})
        told = {"peer_name": PEER_NAME, "dns_host": names} if names else {}
        with (
            self.session(peer_host=HOST, peer_port=server.port, **told) as session,
            ThreadPoolExecutor(1) as pool,
        ):
            asker = Asker(self.broker)
            try:
                future = pool.submit(session.run_case, case, timeout_s=RUN_S)
                asker.await_ready(1)
                yield asker, future
            finally:
                asker.stop()


class Asker:
    """A requester that says what the test wants it to."""

    def __init__(self, broker: Broker) -> None:
        self._ready: queue.Queue[int] = queue.Queue()
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        subscribed = threading.Event()
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self._client.on_message = self._on_message
        self._client.on_subscribe = lambda *_: subscribed.set()
        self._client.connect(broker.address, broker.ports.tcp)
        self._client.subscribe([(f"{TOPICS.root}/+/probe/01/res", 1), (TOPICS.ready, 1)])
        self._client.loop_start()
        assert subscribed.wait(READY_S)

    def _on_message(self, client: mqtt.Client, userdata: Any, message: mqtt.MQTTMessage) -> None:
        del client, userdata
        fields = json.loads(message.payload)
        if message.topic == TOPICS.ready:
            self._ready.put(fields["phase"])
        else:
            self._answers.put(fields)

    def await_ready(self, phase: int) -> None:
        while self._ready.get(timeout=READY_S) != phase:
            pass

    def send(self, topic: str, payload: str | bytes) -> None:
        self._client.publish(topic, payload, 1).wait_for_publish(READY_S)

    def ask(self, phase: int, read: int, profile: str = "baseline") -> None:
        request = {"id": format_request_id(phase, read, read), "trigger_ms": 1}
        self.send(TOPICS.request(profile), json.dumps(request))

    def answer(self) -> dict[str, Any]:
        return self._answers.get(timeout=READY_S)

    def control(self, **fields: int) -> None:
        self.send(TOPICS.control, json.dumps(fields))

    def stop(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


class Server:
    """An HTTP server that answers probes and deals with each read as told: ``hang`` or an answer."""

    def __init__(self, *reads: str) -> None:
        self._reads = iter(reads)
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._hanging: list[socket.socket] = []
        self._hung = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for one in (self._listener, *self._hanging):
            one.close()

    def await_hanging(self) -> None:
        assert self._hung.wait(READY_S)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # the test is over
            request = _read_request(connection)
            if request.startswith(b"GET "):
                self._answer(connection, "ok" if request.startswith(b"GET /probe ") else next(self._reads))
            else:
                connection.close()

    def _answer(self, connection: socket.socket, what: str) -> None:
        if what == "hang":
            self._hanging.append(connection)
            self._hung.set()
            return
        text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" if what == "ok" else what
        connection.sendall(text.encode())
        connection.close()


class NameServer:
    """A name server at port 53 that answers so many questions with HOST, and then falls silent."""

    # this process's own: another checkout may run the same test at this moment
    ADDRESS = f"127.11.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"

    def __init__(self, answers: int) -> None:
        self._answers = answers
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((self.ADDRESS, 53))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> NameServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._answers = 0
        self._socket.sendto(b"", (self.ADDRESS, 53))
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while self._answers:
            question, client = self._socket.recvfrom(512)
            if question:
                self._answers -= 1
                head = question[:2] + struct.pack(">HHHHH", 0x8180, 1, 1, 0, 0)
                record = struct.pack(">HHHIH", 0xC00C, 1, 1, 0, 4)
                self._socket.sendto(head + question[12:] + record + socket.inet_aton(HOST), client)


def _read_request(connection: socket.socket) -> bytes:
    """All of it, or what came instead."""
    data = b""
    while not data.endswith(b"\r\n\r\n") and data[:4] in b"GET " and (more := connection.recv(4096)):
        data += more
    return data
