# SPDX-License-Identifier: Apache-2.0
"""The host's esp-mqtt client, driven line by line (firmware/host/test/test_mqtt_driver.c, ASan and UBSan).

A sanitizer finding ends it, so every test that goes on talking to it also proves that nothing was found.
"""

from __future__ import annotations

import contextlib
import functools
import queue
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.host_builds import build_sanitized
from tests.network.mqtt_peer import Connection, Peer

DEADLINE_S = 60.0
PINGRESP = b"\xd0\x00"


@functools.cache
def host_programs() -> Path:
    """The folder of the client, built where anything changed."""
    return build_sanitized("test_mqtt_driver") / "test"


@dataclass
class Driver:
    """The client program: commands go in, results and events come out, each a line."""

    process: subprocess.Popen[str]
    lines: queue.Queue[str] = field(default_factory=queue.Queue)
    unasked: list[str] = field(default_factory=list)

    @classmethod
    @contextmanager
    def run(cls) -> Iterator[Driver]:
        """A running client; at the end it must have ended well, with nothing found by the sanitizers."""
        process = subprocess.Popen(
            [host_programs() / "test_mqtt_driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            running = cls(process)
            yield running
            with contextlib.suppress(BrokenPipeError):
                running.say("stop")
                running.say("destroy")
            _, errors = process.communicate(timeout=DEADLINE_S * 2)
            assert process.returncode == 0, errors
        finally:
            process.kill()  # one that hangs would have a CPU for itself, at real-time priority
            process.wait()

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.rstrip())
        self.lines.put("end")

    def say(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def _next_line(self, wanted: str) -> str:
        try:
            line = self.lines.get(timeout=DEADLINE_S)
        except queue.Empty:
            pytest.fail(f"no line {wanted!r} within {DEADLINE_S} s, only {self.unasked}")
        if line == "end":
            pytest.fail(f"the client ended while {wanted!r} was awaited: {self.unasked}")
        return line

    def expect(self, start: str) -> dict[str, str]:
        """Wait for a line that starts so: its `key=value` words, and the first other word as `value`.

        Other lines stay for those who ask for them: an event may come before the result of the call that
        caused it.
        """
        for line in self.unasked:
            if line.startswith(start):
                break
        else:
            while not (line := self._next_line(start)).startswith(start):
                self.unasked.append(line)
            self.unasked.append(line)
        self.unasked.remove(line)
        words = line[len(start) :].split()
        pairs = dict(word.split("=", 1) for word in words if "=" in word)
        return pairs | {"value": next((word for word in words if "=" not in word), "")}

    def ask(self, command: str) -> int:
        """Give a command and wait for its result."""
        self.say(command)
        return int(self.expect(f"result {command.split()[0]}")["value"])

    def has(self, start: str) -> bool:
        """Whether a line that starts so has come and was not asked for yet."""
        return any(line.startswith(start) for line in [*self.unasked, *self.lines.queue])

    def connect(self, uri: str, options: str = "") -> None:
        assert self.ask(f"init uri={uri} reconnect=50 {options}".strip()) == 0
        assert self.ask("start") == 0


def connected(driver: Driver, peer: Peer, options: str = "") -> Connection:
    """A client connected to the scripted broker."""
    driver.connect(peer.uri, options)
    connection = peer.accept()
    connection.greet()
    driver.expect("event CONNECTED")
    return connection
