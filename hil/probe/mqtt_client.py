# SPDX-License-Identifier: Apache-2.0
"""python -m hil.probe.mqtt_client: what subscribes, and asks, at the rack's broker beside a product.

It writes what it sees as JSON lines: each message with CLOCK_MONOTONIC, which is the same one in all network
namespaces of a host. Requests go out at their planned times, whether those before were answered or not.
"""

from __future__ import annotations

import argparse
import base64
import signal
import sys
import time
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from hil.network.peers.gateway.lines import LineWriter

SUBSCRIBED, MESSAGE, SENT, FAILED = "subscribed", "message", "sent", "error"
QOS = 2  # the broker lowers it to what each message was sent with
STATUS_FAILED = 3
_REFUSED = 128


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Notes messages at a broker; publishes requests to it.")
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--topic", required=True, help="what is subscribed to")
    parser.add_argument("--lines", type=Path, required=True)
    parser.add_argument("--ask-topic", default="")
    parser.add_argument("--payload", default="", help="of a request; {n} is its number")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--interval-us", type=int, default=0)
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with LineWriter(arguments.lines) as lines:
        try:
            _serve(arguments, lines)
        except (OSError, RuntimeError, ValueError) as error:
            lines.write(FAILED, sentence=str(error))
            print(error, file=sys.stderr)
            return STATUS_FAILED
    return 0


def _serve(arguments: argparse.Namespace, lines: LineWriter) -> None:
    client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=f"hil-probe-{time.monotonic_ns():x}")
    client.max_inflight_messages_set(0)  # nothing waits here for what was sent before
    ready: list[bool] = []

    def on_connect(client: mqtt.Client, _data: Any, _flags: Any, reason: Any, _more: Any) -> None:
        if not reason.is_failure:
            client.subscribe(arguments.topic, QOS)

    def on_subscribe(_client: mqtt.Client, _data: Any, _mid: int, reasons: Any, _more: Any) -> None:
        ready.append(all(reason.value < _REFUSED for reason in reasons))
        lines.write(SUBSCRIBED, granted=ready[-1])

    def on_message(_client: mqtt.Client, _data: Any, message: mqtt.MQTTMessage) -> None:
        time_ns, wall_ns = time.monotonic_ns(), time.time_ns()
        payload = base64.b64encode(message.payload).decode()
        facts = {"qos": message.qos, "dup": int(message.dup), "retain": int(message.retain)}
        lines.write(MESSAGE, time_ns=time_ns, wall_ns=wall_ns, topic=message.topic, payload=payload, **facts)

    client.on_connect = on_connect
    client.on_subscribe = on_subscribe
    client.on_message = on_message
    client.connect(arguments.address, arguments.port, 60)
    client.loop_start()
    while not ready:
        time.sleep(0.01)
    if not ready[0]:
        raise RuntimeError(f"the broker refused the subscription to {arguments.topic}")
    _ask(client, arguments, lines)
    while True:
        signal.pause()


def _ask(client: mqtt.Client, arguments: argparse.Namespace, lines: LineWriter) -> None:
    """Publish the requests at their times."""
    start_ns = time.monotonic_ns()
    for number in range(1, arguments.count + 1):
        planned_ns = start_ns + (number - 1) * arguments.interval_us * 1000
        time.sleep(max(0.0, (planned_ns - time.monotonic_ns()) / 1e9))
        sent_ns = time.monotonic_ns()
        client.publish(arguments.ask_topic, arguments.payload.replace("{n}", str(number)), qos=1)
        lines.write(SENT, number=number, planned_ns=planned_ns, sent_ns=sent_ns)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
