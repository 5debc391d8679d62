# SPDX-License-Identifier: Apache-2.0
"""A case of the real firmware, and a peer of its MQTT connection that loses packets or the connection."""

from __future__ import annotations

import ctypes
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hil.model import Case, Scalar, Series
from hil.session import AgentSession
from tests.firmware.case_defaults import case_defaults
from tests.network.mqtt_peer import PUBLISH, Connection, Packet, Peer
from tests.network.mqtt_rig import Mosquitto
from tests.session.agent_process import AgentProcess

DEADLINE_S = 60.0
SO_ATTACH_FILTER = 26  # asm-generic/socket.h
RETURN_CONSTANT = 0x06  # BPF_RET | BPF_K: keep so many bytes


def run(session: AgentSession, bench: str, **parameters: Scalar) -> Series:
    case = Case(bench, case_defaults(bench, **parameters))
    return session.run_case(case, timeout_s=DEADLINE_S)


@contextmanager
def agent_session(firmware: Path) -> Iterator[AgentSession]:
    """A session that has said hello; the firmware logs no error and ends without a sanitizer's finding."""
    process = AgentProcess(firmware)
    try:
        agent = AgentSession(process, "board-1")
        agent.wait_ready(10.0)
        yield agent
    finally:
        errors = process.stop()
    assert "ERROR: " not in errors, errors
    assert "runtime error" not in errors, errors


def provision(session: AgentSession, broker: Mosquitto, *, without: str = "") -> None:
    files = {"ca_pem": "ca.pem", "client_cert_pem": "client.pem", "client_key_pem": "client.key"}
    pem = {name: (broker.directory / file).read_text() for name, file in files.items() if name != without}
    ports = {f"broker_{name}_port": port for name, port in broker.ports.items()}
    session.provision({**pem, "broker_host": "127.0.0.1", **ports})


def provision_peer(session: AgentSession, peer: Peer) -> None:
    session.provision({"broker_host": "127.0.0.1", "broker_tcp_port": peer.port})


def swallow(connection: Connection) -> None:
    """Have this host's kernel drop all that comes for a connection, as a dead network would."""
    drop_all = struct.pack("HBBI", RETURN_CONSTANT, 0, 0, 0)
    buffer = ctypes.create_string_buffer(drop_all)
    program = struct.pack("HL", 1, ctypes.addressof(buffer))
    connection.sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)


def reset(connection: Connection) -> None:
    """End a connection by RST."""
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@dataclass
class Script:
    """What a scripted peer saw of the messages that it read, in order."""

    messages: list[Packet] = field(default_factory=list)

    def read_until(self, connection: Connection, count: int) -> None:
        """Read until so many messages have come."""
        while len(self.messages) < count:
            packet = connection.read()
            if packet.type == PUBLISH:
                self.messages.append(packet)


@contextmanager
def scripted(peer: Peer, play: Callable[[Connection, Script], None]) -> Iterator[Script]:
    """Have the first connection played by ``play`` on a thread, after its CONNECT was answered."""
    script, failures = Script(), list[BaseException]()

    def act() -> None:
        try:
            connection = peer.accept()
            connection.greet()
            play(connection, script)
        except (OSError, EOFError):
            pass
        except BaseException as error:  # an assertion, for the test to fail with
            failures.append(error)

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield script
    finally:
        thread.join(DEADLINE_S)
        assert not thread.is_alive()
    if failures:
        raise failures[0]
