# SPDX-License-Identifier: Apache-2.0
"""python -m hil.network.peers.mqtt.echo: sends each message back on <topic>/back, with its QoS."""

from __future__ import annotations

import sys

import paho.mqtt.client as mqtt

from hil.network.peers.mqtt.client import arguments_of, serve

BACK = "/back"


def send_back(client: mqtt.Client, message: mqtt.MQTTMessage) -> None:
    """Answer a message; what cannot be sent now is sent when it can be (QoS 1, 2), or is lost (QoS 0)."""
    client.publish(message.topic + BACK, bytes(message.payload), message.qos)


def main(argv: list[str]) -> int:
    return serve(arguments_of("Sends each message back.").parse_args(argv), send_back)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
