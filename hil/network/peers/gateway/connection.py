# SPDX-License-Identifier: Apache-2.0
"""A requester's own connection to the broker, each step of it timed.

paho's loop runs in the thread that asks, so that neither a request nor its answer waits for another thread of
this process.

The requests of one requester and what came back: in time, late, twice, unasked, or not an answer.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode

from hil.network.peers.gateway.lines import LineWriter
from hil.network.peers.gateway.plan import RequesterPlan

EXCERPT_CHARACTERS = 120


@dataclass(frozen=True)
class Answer:
    """An answer; ``received_ns`` is of the monotonic clock, ``received_ms`` of the wall clock."""

    received_ns: int
    received_ms: int
    fields: Mapping[str, Any]


class Answers:
    """Gives each answer to the request whose id it carries, and to no other. Notes everything else."""

    def __init__(self, profile: str, lines: LineWriter) -> None:
        self._profile = profile
        self._lines = lines
        self._sent_ns: dict[str, int] = {}
        self._open = ""
        self._answer: Answer | None = None
        self._answered: set[str] = set()

    def expect(self, request_id: str, sent_ns: int) -> None:
        self._sent_ns[request_id] = sent_ns
        self._open, self._answer = request_id, None

    def take(self) -> Answer | None:
        """Return the answer to the request that was sent last, None where it has not come."""
        return self._answer

    def give_up(self) -> None:
        """What comes for the open request from now on is late."""
        self._open = ""

    def receive(self, payload: bytes | bytearray) -> None:
        """Sort in what came on the response topic."""
        received_ns, received_ms = time.monotonic_ns(), time.time_ns() // 1_000_000
        fields = _parse(payload)
        if fields is None:
            self._note("garbage", excerpt=payload[:EXCERPT_CHARACTERS].decode(errors="replace"))
            return
        request_id = str(fields["id"])
        if request_id in self._answered:
            self._note("duplicate", id=request_id)
        elif request_id not in self._sent_ns:
            self._note("unexpected", id=request_id[:EXCERPT_CHARACTERS])
        elif request_id != self._open:
            late_us = (received_ns - self._sent_ns[request_id]) // 1000
            self._answered.add(request_id)
            self._note("late", id=request_id, after_us=late_us)
        else:
            self._answered.add(request_id)
            self._answer = Answer(received_ns, received_ms, fields)
            self._open = ""

    def _note(self, event: str, **facts: Any) -> None:
        self._lines.write(event, profile=self._profile, **facts)


def _parse(payload: bytes | bytearray) -> dict[str, Any] | None:
    try:
        fields = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) and "id" in fields else None


STEP_TIMEOUT_S = 10.0
KEEPALIVE_S = 30  # as the published requester
LOOP_S = 0.5
_REFUSED = 128  # reason codes from here on are failures


class LinkLostError(Exception):
    """There is no connection to the broker; the message says why."""


class BrokerRefusedError(LinkLostError):
    """The broker answered, and refused: another attempt would end the same way."""


@dataclass(frozen=True)
class ConnectTimes:
    """What it took to be connected: TCP, CONNECT → CONNACK, SUBSCRIBE → SUBACK."""

    connect_us: int
    connack_us: int
    suback_us: int


class Connection:
    """One profile's connection. Only one thread may use it at a time."""

    def __init__(self, plan: RequesterPlan, profile: str, answers: Answers, credentials: list[str]) -> None:
        self.answers = answers
        self.ready_phase = 0
        self._plan = plan
        self._profile = profile
        self._credentials = credentials
        self._client: mqtt.Client | None = None
        self._moments_ns: dict[str, int] = {}
        self._refusal = ""

    def open(self) -> ConnectTimes:
        """Connect and subscribe; returns after SUBACK. Raises LinkLostError."""
        self.close()
        self._moments_ns, self._refusal, self.ready_phase = {}, "", 0
        client = self._client = self._make_client()
        began_ns = time.monotonic_ns()
        try:
            client.connect(self._plan.broker_address, self._plan.broker_port, self._keepalive_s())
        except OSError as error:
            raise LinkLostError(f"connecting: {error.strerror or error}") from error
        self._await("connack", "CONNACK")
        subscribing_ns = time.monotonic_ns()
        topics = self._plan.topics
        client.subscribe([(topics.response(self._profile), self._plan.qos), (topics.ready, 1)])
        self._await("suback", "SUBACK")
        tcp_ns, connack_ns = self._moments_ns["tcp"], self._moments_ns["connack"]
        return ConnectTimes(
            connect_us=(tcp_ns - began_ns) // 1000,
            connack_us=(connack_ns - tcp_ns) // 1000,
            suback_us=(self._moments_ns["suback"] - subscribing_ns) // 1000,
        )

    def close(self) -> None:
        """Disconnect, if connected."""
        if self._client:
            self._client.disconnect()
            self._client.loop(0)
        self._client = None

    def publish(self, topic: str, payload: str, qos: int) -> int:
        """Send a message now; returns its id. Raises LinkLostError."""
        client = self._require_client()
        info = client.publish(topic, payload, qos)
        if info.rc != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise LinkLostError(f"publishing: {mqtt.error_string(info.rc)}")
        return info.mid

    def publish_acknowledged(self, topic: str, payload: str) -> None:
        """Send a message at QoS 1 and wait for its PUBACK. Raises LinkLostError."""
        key = f"puback {self.publish(topic, payload, 1)}"
        self._await(key, "PUBACK")

    def pump(self, until_ns: int, done: Callable[[], object] = lambda: False) -> None:
        """Serve the connection until ``done``, or until the monotonic clock says ``until_ns``.

        Raises LinkLostError.
        """
        client = self._require_client()
        while not done() and (left_ns := until_ns - time.monotonic_ns()) > 0:
            code = client.loop(min(LOOP_S, left_ns / 1e9))
            if code != MQTTErrorCode.MQTT_ERR_SUCCESS:
                if self._refusal:
                    raise BrokerRefusedError(self._refusal)
                raise LinkLostError(mqtt.error_string(code))

    def serve(self) -> None:
        """Take what has come in, without waiting. Raises LinkLostError."""
        self.pump(time.monotonic_ns() + 1_000_000)

    def _make_client(self) -> mqtt.Client:
        client = mqtt.Client(CallbackAPIVersion.VERSION2)
        client.connect_timeout = STEP_TIMEOUT_S
        if self._credentials:
            client.username_pw_set(*self._credentials)
        client.on_socket_open = self._on_socket_open
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_publish = self._on_publish
        client.on_message = self._on_message
        return client

    def _keepalive_s(self) -> int:
        """While others have their turn nobody serves a connection: two profiles' timeouts at most."""
        return max(KEEPALIVE_S, 2 * self._plan.timeout_ms // 1000)

    def _require_client(self) -> mqtt.Client:
        if self._client is None:
            raise LinkLostError("not connected")
        return self._client

    def _await(self, key: str, packet: str) -> None:
        until_ns = time.monotonic_ns() + int(STEP_TIMEOUT_S * 1e9)
        self.pump(until_ns, lambda: key in self._moments_ns or self._refusal)
        if self._refusal:
            raise BrokerRefusedError(self._refusal)
        if key not in self._moments_ns:
            raise LinkLostError(f"no {packet} within {STEP_TIMEOUT_S:.0f} s")

    def _mark(self, key: str) -> None:
        self._moments_ns[key] = time.monotonic_ns()

    def _on_socket_open(self, client: mqtt.Client, userdata: Any, sock: Any) -> None:
        del client, userdata
        self._mark("tcp")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _on_connect(self, client: mqtt.Client, userdata: Any, flags: Any, reason: Any, more: Any) -> None:
        del client, userdata, flags, more
        self._mark("connack")
        if reason.is_failure:
            self._refusal = f"the broker refused the connection: {reason}"

    def _on_subscribe(self, client: mqtt.Client, userdata: Any, mid: int, reasons: Any, more: Any) -> None:
        del client, userdata, mid, more
        self._mark("suback")
        if any(reason.value >= _REFUSED for reason in reasons):
            self._refusal = "the broker refused the subscription"

    def _on_publish(self, client: mqtt.Client, userdata: Any, mid: int, reason: Any, more: Any) -> None:
        del client, userdata, reason, more
        self._mark(f"puback {mid}")

    def _on_message(self, client: mqtt.Client, userdata: Any, message: mqtt.MQTTMessage) -> None:
        del client, userdata
        if message.topic == self._plan.topics.ready:
            self.ready_phase = max(self.ready_phase, _phase(message.payload))
        else:
            self.answers.receive(message.payload)


def _phase(payload: bytes | bytearray) -> int:
    try:
        return int(json.loads(payload)["phase"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return 0
