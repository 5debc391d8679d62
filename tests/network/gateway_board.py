# SPDX-License-Identifier: Apache-2.0
"""A gateway board for tests: requests by MQTT in, real HTTP, answers by MQTT, and one trouble at choice."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from hil.network.peers.gateway.joining import PARTS
from hil.network.peers.gateway.plan import PROFILES, RequestOutcome, Topics

READY_EVERY_S = 0.1
LATE_S = 0.45
Trouble = str  # never-ready, ready-once; of the second read: wrong-id, garbage, twice, late, silent, not-http


@dataclass
class GatewayBoard:
    """Start it with ``with``; ``rows`` are what firmware would send as samples."""

    broker: tuple[str, int]
    topics: Topics
    server: tuple[str, int]
    context: ssl.SSLContext | None = None
    reconnect: str = "both"
    trouble: Trouble = ""
    rows: list[dict[str, int]] = field(default_factory=list)
    connects: int = 0
    told: int = 0  # how often that it is ready
    ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> GatewayBoard:
        self._phase, self._asked_phase = 1, 0
        self._subscribed = False
        self._http: http.client.HTTPConnection | None = None
        self._session: ssl.SSLSession | None = None
        self._leaving = threading.Event()
        self._client = self._connect_mqtt()
        self._herald = threading.Thread(target=self._tell_ready)
        self._herald.start()
        return self

    def _connect_mqtt(self) -> mqtt.Client:
        client = mqtt.Client(CallbackAPIVersion.VERSION2)
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        client.connect(*self.broker)
        client.loop_start()
        return client

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        self._herald.join()
        self._client.disconnect()
        self._client.loop_stop()
        if self._http:
            self._http.close()

    def columns(self) -> Mapping[str, tuple[int, ...]]:
        names = ("phase", "read", "profile", "received_us", "published_us", "outcome", *PARTS)
        return {name: tuple(row[name] for row in self.rows) for name in names}

    def _on_connect(self, client: mqtt.Client, *_: Any) -> None:
        self.connects += 1
        client.subscribe([(self.topics.control, 1), *((self.topics.request(name), 1) for name in PROFILES)])

    def _on_subscribe(self, *_: Any) -> None:
        self._subscribed = True

    def _tell_ready(self) -> None:
        while not self._leaving.wait(READY_EVERY_S):
            waiting = self._subscribed and self._asked_phase < self._phase
            limit = {"never-ready": 0, "ready-once": 1}.get(self.trouble, self.told + 1)
            if waiting and self.told < limit:
                self.told += 1
                self._client.publish(self.topics.ready, json.dumps({"phase": self._phase}))

    def _on_message(self, client: mqtt.Client, userdata: Any, message: mqtt.MQTTMessage) -> None:
        del userdata
        received_ns = time.monotonic_ns()
        payload = json.loads(message.payload)
        if message.topic != self.topics.control:
            self._serve(message.topic, payload["id"], received_ns)
        elif "end" in payload:
            self.ended.set()
        elif payload["phase"] > self._phase:
            self._phase = payload["phase"]
            if self.reconnect in ("both", "board"):
                self._subscribed = False
                self._drop_http()
                client.disconnect()
                self._client = self._connect_mqtt()

    def _serve(self, topic: str, request_id: str, received_ns: int) -> None:
        phase, read, _ = map(int, request_id.split("-"))
        self._asked_phase = max(self._asked_phase, phase)
        profile = topic.split("/")[2]
        trouble = self.trouble if (phase, read) == (1, 2) else ""
        facts = {"outcome": 0, "dns_us": 0, **self._get(request_id)}
        if trouble == "not-http":
            facts["outcome"] = int(RequestOutcome.NOT_HTTP)
        if trouble == "late":
            time.sleep(LATE_S)
        answer = {
            "id": request_id,
            "timestamp_ms": time.time_ns() // 1_000_000,
            "status": 200,
            "body_bytes": 1,
            **facts,
            "gateway_us": (time.monotonic_ns() - received_ns) // 1000,
        }
        if trouble == "wrong-id":
            answer["id"] = "9-9-9"
        text = "}{ no JSON" if trouble == "garbage" else json.dumps(answer)
        for _ in range({"silent": 0, "twice": 2}.get(trouble, 1)):
            self._client.publish(self.topics.response(profile), text)
        times = {"received_us": received_ns // 1000, "published_us": time.monotonic_ns() // 1000}
        self.rows.append({"phase": phase, "read": read, "profile": PROFILES.index(profile), **times, **facts})

    def _get(self, request_id: str) -> dict[str, int]:
        """Make the real request; the connection is kept, a new one resumes the TLS session."""
        reused = self._http is not None
        times = {"tcp_us": 0, "tls_us": 0, "resumed": 0} if reused else self._connect()
        assert self._http is not None
        began_ns = time.monotonic_ns()
        self._http.request("GET", f"/probe/01?id={request_id}", headers={"X-Request-Id": request_id})
        body = json.loads(self._http.getresponse().read())
        assert body["query"] == f"id={request_id}"
        if isinstance(self._http.sock, ssl.SSLSocket):
            self._session = self._http.sock.session
        return {**times, "http_us": (time.monotonic_ns() - began_ns) // 1000, "reused": int(reused)}

    def _connect(self) -> dict[str, int]:
        began_ns = time.monotonic_ns()
        self._http = http.client.HTTPConnection(*self.server)
        self._http.connect()
        tcp_ns = time.monotonic_ns()
        resumed = False
        if self.context:
            name = self.server[0]
            sock = self.context.wrap_socket(self._http.sock, server_hostname=name, session=self._session)
            self._http.sock, resumed = sock, bool(sock.session_reused)
        tls_us = (time.monotonic_ns() - tcp_ns) // 1000 if self.context else 0
        return {"tcp_us": (tcp_ns - began_ns) // 1000, "tls_us": tls_us, "resumed": int(resumed)}

    def _drop_http(self) -> None:
        if self._http:
            self._http.close()
        self._http = None
