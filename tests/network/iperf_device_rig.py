# SPDX-License-Identifier: Apache-2.0
"""The real firmware and real iperfs in a network of their own, where port 5001 is nobody else's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hil.model import Case, Scalar, Series
from hil.session import AgentSession
from hil.wire import Note
from tests.firmware.case_defaults import case_defaults
from tests.firmware.kernel_rig import firmware
from tests.session.agent_process import AgentProcess

LOOPBACK = "127.0.0.1"
BOARD_PORT = 5001
DEADLINE_S = 30.0
CHECKOUT = Path(__file__).resolve().parents[2]
LISTENING = {"tcp": "0A", "udp": "07"}  # states in /proc/net: LISTEN; of UDP every bound socket has this one

DEFAULTS = case_defaults("throughput", duration_s=1, omit_s=0, timeout_ms=5000)


class Program:
    """A process in the network, killed at the end of the test if it still runs."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=CHECKOUT
        )

    def output(self) -> str:
        """Wait for its end and return what it wrote."""
        assert self.process.stdout is not None
        said = self.process.stdout.read()  # communicate() misses what ready() has read beyond its line
        self.process.wait(timeout=DEADLINE_S)
        return said

    def ready(self) -> str:
        """Wait for its first line."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def end(self) -> str:
        """Ask it to end and return what it wrote."""
        self.process.terminate()
        return self.output()


@dataclass
class Board:
    """The firmware as a process, and the conversation with its agent."""

    process: AgentProcess
    session: AgentSession
    notes: list[Note] = field(default_factory=list)

    def provision(self, port: int = BOARD_PORT) -> None:
        self.session.provision({"peer_host": LOOPBACK, "peer_port": port})

    def run(self, on_ready: Callable[[], object] | None = None, /, **parameters: Scalar) -> Series:
        """Run a case; ``on_ready`` is called when the board first says that it listens."""
        self.notes.clear()

        def note(message: Note) -> None:
            self.notes.append(message)
            if on_ready is not None and len(self.notes) == 1:
                on_ready()

        case = Case("throughput", {**DEFAULTS, **parameters})
        return self.session.run_case(case, timeout_s=DEADLINE_S, on_note=note)


@dataclass
class Network:
    """A network namespace with nothing but a loopback, where boards run ``elf``."""

    elf: Path
    prefix: tuple[str, ...]
    programs: list[Program] = field(default_factory=list)
    boards: list[Board] = field(default_factory=list)

    @classmethod
    @contextmanager
    def open(cls) -> Iterator[Network]:
        script = "ip link set lo up; echo up; exec sleep 600"
        holder = subprocess.Popen(
            ["unshare", "--map-root-user", "--net", "sh", "-c", script], stdout=subprocess.PIPE, text=True
        )
        assert holder.stdout is not None
        assert holder.stdout.readline() == "up\n"
        network = cls(firmware(), ("nsenter", "-t", str(holder.pid), "-U", "-n", "--preserve-credentials"))
        try:
            yield network
        finally:
            network.clear()
            for board in network.boards:
                board.process.process.kill()
                board.process.stop()
            holder.kill()
            holder.communicate()

    def clear(self) -> None:
        """End every program, but no board."""
        for program in self.programs:
            program.process.kill()
            if program.process.stdout and not program.process.stdout.closed:
                program.process.communicate()
        self.programs.clear()

    def new_board(self) -> Board:
        process = AgentProcess(*self.prefix, self.elf)
        session = AgentSession(process, f"board-{len(self.boards) + 1}")
        self.boards.append(Board(process, session))
        session.wait_ready(10.0)
        return self.boards[-1]

    def board(self, index: int = 0) -> Board:
        """Return a board that knows its peer, started when it is first asked for."""
        while index >= len(self.boards):
            self.new_board().provision()
        return self.boards[index]

    def start(self, *argv: str) -> Program:
        self.programs.append(Program([*self.prefix, *argv]))
        return self.programs[-1]

    def iperf_client(self, *options: str, port: int = BOARD_PORT) -> Program:
        return self.start("iperf", "-c", LOOPBACK, "-p", str(port), *options)

    def iperf_server(self, *options: str) -> Program:
        """Start a server and wait until its port is open."""
        program = self.start("iperf", "-s", *options)
        self.await_port("udp" if "-u" in options else "tcp")
        return program

    def await_port(self, protocol: str, port: int = BOARD_PORT) -> None:
        """Return when somebody listens there."""
        local = f":{port:04X} "
        script = (
            f"while ! grep -E '{local}.* {LISTENING[protocol]} ' /proc/net/{protocol}*; do sleep 0.02; done"
        )
        subprocess.run(
            [*self.prefix, "sh", "-c", script], check=True, timeout=DEADLINE_S, stdout=subprocess.DEVNULL
        )

    def peer(self, name: str, *args: object) -> Program:
        """Start a function of iperf_peers.py; it has written its first line when this returns."""
        program = self.start(sys.executable, "-m", "tests.network.iperf_peers", name, *map(str, args))
        assert program.ready() == "ready\n"
        return program
