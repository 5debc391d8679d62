# SPDX-License-Identifier: Apache-2.0
"""examples/sensor-node, a product that knows nothing of hil: it builds as it is, and does what it should.

It runs as a process on the loopback, its flash in a file, against a mosquitto that asks for a password.
"""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import pytest
from paho.mqtt import client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from hil.boards.firmware import app_image
from hil.network.broker_config import BrokerLogin, write_password_file
from tests.host_builds import build_product
from tests.lab import ROOT, free_ports, is_free, wait_for
from tests.virtual.virtual_board_rig import flash_files, write_flash_file

pytestmark = pytest.mark.slow

NODE = ROOT / "examples" / "sensor-node"
MAC = "02:00:00:77:00:01"
TOPICS = "sensors/020000770001"
FLASH_BYTES = 4 << 20
LOGIN = BrokerLogin("node", "not a secret")
DEADLINE_S = 60.0
SECOND_SLOT, SLOT_BYTES = 0x200000, 0x1F0000  # of the node's partitions.csv

DROP_EVERY = 5
LEAK_BYTES = 2000
SLOW_BOOT_MS = 600
SLOW_PUBLISH_US = 20_000
FAULTS = {
    "NODE_DROP_EVERY": DROP_EVERY,
    "NODE_LEAK": LEAK_BYTES,
    "NODE_SLOW_BOOT_MS": SLOW_BOOT_MS,
    "NODE_SLOW_PUBLISH": SLOW_PUBLISH_US,
}


Item = TypeVar("Item")


@dataclass(frozen=True)
class Built:
    folder: Path
    said: str

    @property
    def program(self) -> Path:
        return self.folder / "sensor_node.elf"


@pytest.fixture(scope="module")
def build_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("firmware")


def build(root: Path, name: str, target: str = "virtual-esp32", options: Mapping[str, int] = {}) -> Built:
    """Build the node; its folder gets a name of its own, as another build would take its place."""
    said: list[str] = []
    sdkconfig = root / "options"
    sdkconfig.write_text("".join(f"CONFIG_{option}={value}\n" for option, value in options.items()))
    folder = build_product(NODE, target=target, say=said.append, sdkconfig=sdkconfig, build_root=root)
    return Built(folder.rename(root / name), "\n".join(said))


@pytest.fixture(scope="module")
def as_it_is(build_root: Path) -> Built:
    return build(build_root, "as-it-is")


@pytest.fixture(scope="module")
def faulty(build_root: Path) -> Built:
    return build(build_root, "faulty", options=FAULTS)


def within_deadline(items: queue.Queue[Item], awaited: str) -> Iterator[Item]:
    """Yield what comes; fail when the deadline has passed, however much has come."""
    end = time.monotonic() + DEADLINE_S
    last: deque[Item] = deque(maxlen=30)
    while True:
        try:
            last.append(items.get(timeout=max(0.0, end - time.monotonic())))
        except queue.Empty:
            pytest.fail(f"within {DEADLINE_S} s there was not {awaited}, but at last {list(last)}")
        yield last[-1]


@dataclass
class Broker:
    """A mosquitto that lets in LOGIN alone, and what it has been sent below the node's topics."""

    port: int
    messages: queue.Queue[tuple[str, dict[str, Any]]] = field(default_factory=queue.Queue)
    client: mqtt.Client = field(default_factory=lambda: mqtt.Client(CallbackAPIVersion.VERSION2))

    @property
    def uri(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    def connect(self) -> None:
        subscribed = threading.Event()
        self.client.username_pw_set(LOGIN.username, LOGIN.password)
        self.client.on_connect = lambda client, *_: client.subscribe(f"{TOPICS}/#", qos=1)
        self.client.on_subscribe = lambda *_: subscribed.set()
        self.client.on_message = lambda _client, _data, message: self._note(message)
        self.client.connect("127.0.0.1", self.port)
        self.client.loop_start()
        assert subscribed.wait(DEADLINE_S)

    def _note(self, message: mqtt.MQTTMessage) -> None:
        if not message.topic.endswith("/cmd"):
            self.messages.put((message.topic.removeprefix(f"{TOPICS}/"), json.loads(message.payload)))

    def ask(self, **command: Any) -> dict[str, Any]:
        """Send a command; return the reply to it."""
        self.client.publish(f"{TOPICS}/cmd", json.dumps(command), qos=1)
        for kind, content in within_deadline(self.messages, f"a reply to {command}"):
            if kind == "reply" and content["id"] == command["id"]:
                return content
        raise AssertionError

    def readings(self, count: int) -> list[dict[str, Any]]:
        """Return the next readings; what else comes is left out."""
        found: list[dict[str, Any]] = []
        for kind, content in within_deadline(self.messages, f"{count} readings"):
            found += [content] if kind == "reading" else []
            if len(found) == count:
                break
        return found


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    running = Broker(*free_ports(1))
    lines = [
        *(["user root"] if os.geteuid() == 0 else []),
        f"listener {running.port} 127.0.0.1",
        f"password_file {write_password_file(LOGIN, tmp_path)}",
    ]
    (tmp_path / "mosquitto.conf").write_text("\n".join(lines) + "\n")
    process = subprocess.Popen(
        ["mosquitto", "-c", tmp_path / "mosquitto.conf"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: not is_free(running.port), lambda: f"mosquitto does not listen on {running.port}")
        running.connect()
        yield running
    finally:
        running.client.disconnect()
        running.client.loop_stop()
        process.terminate()
        process.wait()


def write_flash(built: Built, path: Path) -> Path:
    """Write what esptool would have flashed."""
    return write_flash_file(path, flash_files(built.folder), FLASH_BYTES)


@dataclass
class Node:
    """A running node: what is typed goes in, lines come out."""

    process: subprocess.Popen[str]
    lines: queue.Queue[str] = field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def expect(self, pattern: str) -> re.Match[str]:
        """Wait for a line that is this pattern from start to end."""
        for line in within_deadline(self.lines, f"a line {pattern!r}"):
            if found := re.fullmatch(pattern, line):
                return found
        raise AssertionError


def program_at(offset: int, flash: Path) -> Path:
    """Return the program of the image in a slot, as a virtual board takes it from there."""
    data = flash.read_bytes()
    image = app_image.read_image(lambda start, count: data[start : start + count], offset, SLOT_BYTES)
    elf = app_image.unpack_elf(image)
    assert elf is not None
    program = flash.with_suffix(".elf")
    program.write_bytes(elf)
    return program


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder over HTTP; yields its address."""
    handler = partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def running(program: Path, flash: Path) -> Iterator[Node]:
    """Start a program on its flash; end it, if it has not ended, with the block."""
    program.chmod(0o755)
    variables = {"VBOARD_MAC": MAC, "VBOARD_INTERFACE": "lo", "VBOARD_AP": "plant"}
    with flash.open("r+b") as file:
        fd = file.fileno()
        env = {**os.environ, **variables, "VBOARD_FLASH_FD": str(fd), "VBOARD_AP_PASSWORD": "of the plant"}
        process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=[fd], env=env
        )
        node = Node(process)
        try:
            yield node
        finally:
            process.kill()
            process.wait()
            node.reader.join()
            process.communicate()  # closes its pipes


def provision(built: Built, flash: Path, uri: str) -> None:
    """Type the settings that the README names, and reboot, which ends the program."""
    with running(built.program, flash) as node:
        node.expect(r"\[ +\d+\.\d{3}\] net   no network: .*")
        node.say('set wifi plant "of the plant"')
        node.expect(r"\[.*\] set   wifi ok")
        node.say(f'set mqtt {uri} {LOGIN.username} "{LOGIN.password}"')
        node.expect(r"\[.*\] set   mqtt ok")
        node.say("reboot")
        assert node.process.wait(DEADLINE_S) == 0


@pytest.mark.parametrize(
    "target", ["virtual-esp32", pytest.param("virtual-esp32c3", marks=pytest.mark.heavy)]
)
def test_the_host_has_all_that_the_node_needs(as_it_is: Built, build_root: Path, target: str) -> None:
    """The node builds unchanged for both of its chips, and nothing of it is left out."""
    built = as_it_is if target == "virtual-esp32" else build(build_root, target, target)
    assert "no effect here" not in built.said


def test_it_publishes_and_answers(as_it_is: Built, broker: Broker, tmp_path: Path) -> None:
    """With settings from the console it joins, logs in, publishes numbered readings, and obeys."""
    flash = write_flash(as_it_is, tmp_path / "flash")
    provision(as_it_is, flash, broker.uri)
    with running(as_it_is.program, flash) as node:
        node.expect(r"\[ +\d+\.\d{3}\] node  boot ok reason=POWERON")
        node.expect(r"\[ +\d+\.\d{3}\] net   got ip 127\.0\.0\.1 rssi=-50")
        for seq in (1, 2):
            node.expect(rf"\[ +\d+\.\d{{3}}\] pub   q seq={seq}")
            node.expect(rf"\[ +\d+\.\d{{3}}\] pub   ack seq={seq} msg=\d+")
        node.expect(r"\[ +\d+\.\d{3}\] disp  frame=\d+ crc=[0-9a-f]{8} took=\d+us")
        node.expect(r"\[ +\d+\.\d{3}\] mem   free=\d+ min=\d+")
        readings = broker.readings(5)
        assert [reading["seq"] for reading in readings] == [1, 2, 3, 4, 5]
        assert all(isinstance(reading[name], int) for reading in readings for name in ("t_us", "temp_mC"))
        times_us = [reading["t_us"] for reading in readings]
        assert times_us == sorted(set(times_us))
        assert broker.ask(id=7, op="ping") == {"id": 7, "ok": True}
        assert broker.ask(id=8, op="period", ms=20) == {"id": 8, "ok": True}
        assert broker.ask(id=9, op="dance") == {"id": 9, "ok": False, "error": "unknown op"}
        node.expect(r"\[.*\] cmd   id=9 op=dance unknown op")
        node.say("status")
        stat = node.expect(r"\[.*\] stat  ip=127\.0\.0\.1 mqtt=up sent=(\d+) acked=(\d+)")
        assert int(stat[1]) >= int(stat[2]) >= 5


def test_planted_faults_are_there(faulty: Built, broker: Broker, tmp_path: Path) -> None:
    """Each option of the menu does what it says: numbers left out, heap lost, boot and publish delayed."""
    flash = write_flash(faulty, tmp_path / "flash")
    provision(faulty, flash, broker.uri)
    with running(faulty.program, flash) as node:
        booted = node.expect(r"\[ *([\d.]+)\] node  boot ok reason=POWERON")
        queued = node.expect(r"\[ *([\d.]+)\] pub   q seq=3")
        acked = node.expect(r"\[ *([\d.]+)\] pub   ack seq=3 msg=\d+")
        readings = broker.readings(12)
    assert float(booted[1]) * 1000 >= SLOW_BOOT_MS
    assert round((float(acked[1]) - float(queued[1])) * 1_000_000) >= SLOW_PUBLISH_US - 1000
    assert [reading["seq"] for reading in readings] == [1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14]
    assert readings[0]["heap"] - readings[-1]["heap"] >= 13 * LEAK_BYTES * 0.8


def test_it_updates_itself(as_it_is: Built, faulty: Built, broker: Broker, tmp_path: Path) -> None:
    """What its server has not is told and changes nothing; an image is taken, and the next boot is its."""
    flash = write_flash(as_it_is, tmp_path / "flash")
    provision(as_it_is, flash, broker.uri)
    with running(as_it_is.program, flash) as node, served(faulty.folder) as address:
        node.expect(r"\[.*\] node  version=\S+ slot=ota_0")
        broker.readings(1)
        failed = broker.ask(id=1, op="ota", url=f"{address}/nothing.bin")
        assert (failed["ok"], bool(failed["error"])) == (False, True)
        assert broker.ask(id=2, op="ota", url=f"{address}/sensor_node.bin") == {"id": 2, "ok": True}
        assert node.process.wait(DEADLINE_S) == 0
    with running(program_at(SECOND_SLOT, flash), flash) as node:
        node.expect(r"\[.*\] node  version=\S+ slot=ota_1")
        node.expect(r"\[.*\] pub   ack seq=4 msg=\d+")
        node.expect(r"\[.*\] pub   ack seq=6 msg=\d+")
