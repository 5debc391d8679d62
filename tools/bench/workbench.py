# SPDX-License-Identifier: Apache-2.0
"""One virtual board under the figures' own control: rack, broker, flashed firmware, a session."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import serial

import hil.boards.serial_url
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.build import build
from hil.boards.flash import flash
from hil.boards.lease import lease_boards, lock_dir
from hil.boards.rack import Board, load_rack
from hil.model import Case
from hil.network.broker import Broker
from hil.network.certificates import Certificates, make_certificates
from hil.network.name_server import PEER_NAME
from hil.session import AgentSession
from hil.thresholds import load
from hil.virtual.air.profile import load_profile
from hil.virtual.virtual_rack import VirtualRack, at_its_port, run_dir, start_virtual_rack

OUT = PROJECT_ROOT / "out"
RACK_FILE = PROJECT_ROOT / "hil" / "racks" / "virtual.yaml"
READY_TIMEOUT_S = 30.0


class PortConsole:
    """hil.session.console.Console over a serial port."""

    def __init__(self, board: Board) -> None:
        hil.boards.serial_url.register()
        self._board = board
        self.open()

    def open(self) -> None:
        """Open the port, again where another client has taken it meanwhile."""
        self._port = serial.serial_for_url(self._board.serial, baudrate=self._board.baud, timeout=0.02)

    def read(self, timeout_s: float) -> bytes:
        deadline = time.monotonic() + timeout_s
        while True:
            data: bytes = self._port.read(max(1, self._port.in_waiting))
            if data or time.monotonic() >= deadline:
                return data

    def write(self, data: bytes) -> None:
        self._port.write(data)

    def reset(self) -> None:
        """Pulse EN, as esptool does after flashing."""
        self._port.dtr = False
        self._port.rts = True
        time.sleep(0.1)
        self._port.rts = False

    def close(self) -> None:
        self._port.close()


@dataclass(frozen=True)
class Workbench:
    """What a figure measures with."""

    board: Board
    rack: VirtualRack
    broker: Broker
    certificates: Certificates
    session: AgentSession
    console: PortConsole
    build_dir: Path
    folder: Path


@contextmanager
def workbench(
    rack_path: Path = RACK_FILE,
    out: Path = OUT,
    build_dir: Path | None = None,
    log: Callable[[str], None] | None = None,
    profile: str = "perfect",
) -> Iterator[Workbench]:
    """Lease the virtual rack's first board, flash it and bring its agent up.

    ``build_dir`` is another firmware with the agent than this checkout's; ``log`` takes the console's lines.
    """
    rack_file = load_rack(rack_path)
    board = rack_file.boards[0]
    build_dir = build_dir or build(board.target, say=lambda _line: None)
    folder = out / "bench"
    with ExitStack() as stack:
        stack.enter_context(lease_boards(lock_dir(rack_file, out), [board.id], run_id="bench"))
        state_dir = run_dir(rack_file, [board], out)
        rack = start_virtual_rack(rack_file, [board], load_profile(profile), out, state_dir)
        stack.callback(rack.stop)
        board = at_its_port(board, rack)
        certificates = make_certificates(folder / "certificates", rack.host_address, PEER_NAME)
        broker = Broker.start(rack, rack.host_address, folder / "broker", certificates)
        stack.callback(broker.stop)
        flash(board, build_dir, log=folder / "flash.log")
        console = PortConsole(board)
        stack.callback(console.close)
        session = AgentSession(console, board.id, log)
        console.reset()
        session.wait_ready(READY_TIMEOUT_S)
        session.provision(
            {
                "ca_pem": certificates.ca_pem,
                "utc_us": time.time_ns() // 1000,
                "broker_host": broker.address,
                "broker_tcp_port": broker.ports.tcp,
                "broker_tls_port": broker.ports.tls,
            }
        )
        session.network_up()
        yield Workbench(board, rack, broker, certificates, session, console, build_dir, folder)


def publish_case(**overrides: int | str) -> Case:
    """Return a case of the bench ``publish`` with the threshold file's defaults and ``overrides``."""
    defaults = load("publish", PROJECT_ROOT / "thresholds").parameters
    parameters = {name: parameter.default for name, parameter in defaults.items()}
    return Case("publish", {**parameters, **overrides})
