# SPDX-License-Identifier: Apache-2.0
"""One TCP flow between a board's namespace and the rack's host: the host build's sockets against Linux's.

The board's end is firmware/host/test/test_lwip_flow.c.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hil.network.capture import Capture
from hil.network.dissect.tcp import TcpFacts, read_facts
from hil.virtual.remote_process import RemoteProcess
from hil.virtual.virtual_rack import VirtualRack
from tests.boards.rack_tools import wait_until

TIMEOUT_S = 30.0

Role = Literal["client", "server"]

# connect | listen ADDRESS PORT, send | receive, segment size (0: its own): until the other end closes.
_PEER = """
import contextlib, socket, sys
how, address, port, what, mss = sys.argv[1:]
end = socket.socket()
end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if int(mss):
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, int(mss))
if how == "listen":
    end.bind((address, int(port)))
    end.listen(1)
    print("ready", flush=True)
    end, _ = end.accept()
else:
    end.connect((address, int(port)))
data = bytes(65536)
with contextlib.suppress(ConnectionError):
    while what == "send":
        end.sendall(data)
    while end.recv(262144):
        pass
"""


@dataclass(frozen=True)
class Flow:
    """``options`` are words of test_lwip_flow: window, buffer, mss, omit_ms, run_ms, chunk."""

    role: Role  # of the board
    sends: bool  # the board
    options: Mapping[str, int] = field(default_factory=dict)
    peer_mss: int = 0


@dataclass(frozen=True)
class FlowResult:
    """``sizes`` are window, buffer and mss as the board's socket answers them once connected."""

    sizes: Mapping[str, int]
    moved_bytes: int
    took_us: int

    @property
    def mbps(self) -> float:
        return self.moved_bytes * 8 / self.took_us


@dataclass(frozen=True)
class BoardEnd:
    """A spawner in a board's namespace: there a capture sees what the board sent before the air delays it."""

    rack: VirtualRack
    board: str
    isolated: bool = True
    enter_command: str = ""

    def spawn(self, argv: Sequence[str], *, log_path: Path) -> RemoteProcess:
        return self.rack.spawn(argv, netns=self.board, log_path=log_path)


def run_flow(
    end: BoardEnd, program: Path, flow: Flow, folder: Path, port: int, prefix: Sequence[str] = ()
) -> FlowResult:
    """Run ``flow`` to its end; ``prefix`` goes before both programs' command lines."""
    rack, listens = end.rack, flow.role == "server"
    address = rack.board_address(end.board) if listens else rack.host_address
    what = "receive" if flow.sends else "send"
    words = ["connect" if listens else "listen", address, str(port), what, str(flow.peer_mss)]
    peer = [*prefix, sys.executable, "-c", _PEER, *words]
    options = {"send" if flow.sends else "receive": 1, "port": port, **flow.options}
    board = [*prefix, str(program), *(f"{key}={value}" for key, value in options.items())]
    board.append("listen=1" if listens else f"connect={address}")
    board_log, peer_log = folder / f"board-{port}.log", folder / f"peer-{port}.log"
    for leftover in (board_log, peer_log):
        leftover.unlink(missing_ok=True)

    def start_board() -> RemoteProcess:
        return end.spawn(board, log_path=board_log)

    def start_peer() -> RemoteProcess:
        return rack.spawn(peer, log_path=peer_log)

    starts = ((start_board, board_log), (start_peer, peer_log))
    (first, log), (second, _) = starts if listens else starts[::-1]
    processes = [first()]
    wait_until(lambda: "ready" in log.read_text(), f"{flow} listens")
    processes.append(second())
    assert [process.wait(TIMEOUT_S) for process in processes] == [0, 0], board_log.read_text()
    return _result(board_log.read_text())


def captured_flow(
    end: BoardEnd, program: Path, flow: Flow, folder: Path, port: int
) -> tuple[FlowResult, TcpFacts]:
    """Run ``flow`` and return what a complete capture at the board's end says of its data direction."""
    address = end.rack.board_address(end.board)
    capture = Capture.start(end, ["wlan0"], folder / f"{port}.pcapng", capture_filter=f"host {address}")
    try:
        result = run_flow(end, program, flow, folder, port)
        counts = capture.stop()
    finally:
        capture.kill()
    assert counts.complete, counts
    sender = address if flow.sends else end.rack.host_address
    facts = read_facts(capture.path, port=port, sender=sender, host=end.rack.host_address)
    assert facts is not None
    return result, facts


def _result(said: str) -> FlowResult:
    lines = {line.partition(" ")[0]: line.partition(" ")[2] for line in said.splitlines()}
    sizes, moved = (
        {key: int(value) for key, _, value in (pair.partition("=") for pair in lines[name].split())}
        for name in ("sizes", "flow")
    )
    return FlowResult(sizes, moved["bytes"], moved["us"])
