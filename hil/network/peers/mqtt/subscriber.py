# SPDX-License-Identifier: Apache-2.0
"""python -m hil.network.peers.mqtt.subscriber: notes each message of the bench `delivery` that comes.

With ``--drop-every N`` every Nth message is thrown away unseen, as by an application that lost it; its number
goes to ``--dropped``, which is the truth to test a ledger against and no evidence for it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, TextIO

import paho.mqtt.client as mqtt

from hil.network.peers.mqtt.client import arguments_of, serve

HEADER = "number,time_us,qos,dup,retain,run\n"


class Notes:
    """arrivals.csv, and dropped.csv where messages are thrown away. Each line is written at once."""

    def __init__(self, arrivals: TextIO, dropped: TextIO | None, drop_every: int) -> None:
        self._arrivals = arrivals
        self._dropped = dropped
        self._drop_every = drop_every
        self._count = 0
        _write(arrivals, HEADER)
        if dropped:
            _write(dropped, "number\n")

    def handle(self, client: mqtt.Client, message: mqtt.MQTTMessage) -> None:
        """Note a message by the wall clock, as captures have it; what is none of ours is passed over."""
        del client
        time_us = time.time_ns() // 1000
        found = _number_and_run(message.payload)
        if found is None:
            return
        number, run = found
        self._count += 1
        if self._dropped and self._count % self._drop_every == 0:
            _write(self._dropped, f"{number}\n")
            return
        flags = f"{message.qos},{int(message.dup)},{int(message.retain)}"
        _write(self._arrivals, f"{number},{time_us},{flags},{run}\n")


def _write(file: TextIO, line: str) -> None:
    file.write(line)
    file.flush()


def _number_and_run(payload: bytes | bytearray) -> tuple[int, int] | None:
    """Return a message's number, and the nonce of the case that it belongs to: a stale one has another."""
    try:
        message: Any = json.loads(payload)
        found = message["n"], message["run"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if all(type(value) is int and value >= 0 for value in found) else None


def main(argv: list[str]) -> int:
    parser = arguments_of("Notes the messages of the bench delivery.")
    parser.add_argument("--arrivals", type=Path, required=True)
    parser.add_argument("--drop-every", type=int, default=0)
    parser.add_argument("--dropped", type=Path)
    arguments = parser.parse_args(argv)
    if (arguments.drop_every > 0) != (arguments.dropped is not None):
        parser.error("--drop-every and --dropped go together")
    with arguments.arrivals.open("a") as arrivals:
        if not arguments.dropped:
            return serve(arguments, Notes(arrivals, None, 0).handle)
        with arguments.dropped.open("a") as dropped:
            return serve(arguments, Notes(arrivals, dropped, arguments.drop_every).handle)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
