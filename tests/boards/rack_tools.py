# SPDX-License-Identifier: Apache-2.0
"""What the tests of the virtual rack share: a stand-in board, and a look at what a rack left behind."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hil.network.process import LocalProcess, LocalSpawner
from hil.virtual.air.build import build_air
from hil.virtual.air.profile import AirProfile
from hil.virtual.rack_start import BoardLaunch
from hil.virtual.virtual_rack import VirtualBoardSpec, VirtualRack
from tests.lab import all_processes, read_process, wait_for

CHECKOUT = Path(__file__).resolve().parents[2]
AIR_DIR = CHECKOUT / "out" / "virtual" / "air"
DEADLINE_S = 60.0

# Answers on its serial port and on its control socket, as a virtual board does; with a child of its own.
BOARD_PROGRAM = """
import os, socket, subprocess, sys, threading
subprocess.Popen(["sleep", "600"])
serial = socket.socket(fileno=int(sys.argv[1]))
os.chdir(os.path.dirname(sys.argv[2]))
control = socket.socket(socket.AF_UNIX)
control.bind(os.path.basename(sys.argv[2]))
control.listen()
def serve(listener, answer):
    while True:
        connection, _ = listener.accept()
        connection.sendall(answer)
        connection.close()
threading.Thread(target=serve, args=(control, b"{}\\n"), daemon=True).start()
serve(serial, b"board\\n")
"""


def board_command(board: BoardLaunch) -> Sequence[str]:
    return [sys.executable, "-c", BOARD_PROGRAM, str(board.listen_fd), str(board.control_path)]


def start_rack(
    state_dir: Path,
    *,
    name: str = "test",
    boards: Sequence[str] = ("b1",),
    profile: AirProfile | None = None,
    ports: Sequence[int] = (0, 0, 0, 0),
) -> VirtualRack:
    specs = [
        VirtualBoardSpec(id=board, mac=f"24:0a:c4:00:00:{index:02x}", port=ports[index])
        for index, board in enumerate(boards)
    ]
    return VirtualRack.start(
        name=name,
        state_dir=state_dir,
        boards=specs,
        profile=profile or AirProfile("perfect"),
        air_seed=1,
        board_command=board_command,
        air_binary=build_air(AIR_DIR),
    )


@contextlib.contextmanager
def running_rack(state_dir: Path, *, boards: Sequence[str] = ("b1",)) -> Iterator[VirtualRack]:
    """A rack that is stopped at the end."""
    started = start_rack(state_dir, boards=boards)
    try:
        yield started
    finally:
        started.stop()


@contextlib.contextmanager
def rack_of(boards: Sequence[VirtualBoardSpec], state_dir: Path, **more: Any) -> Iterator[VirtualRack]:
    """A rack of boards as the product starts them, behind the perfect air; it is stopped at the end."""
    started = VirtualRack.start(
        name="test", state_dir=state_dir, boards=boards, profile=AirProfile("perfect"), air_seed=1, **more
    )
    try:
        yield started
    finally:
        started.stop()


class UnprivilegedSpawner:
    """Starts programs as a user who may neither capture nor change the network."""

    isolated = False
    enter_command = ""

    def spawn(self, argv: Sequence[str], *, log_path: Path) -> LocalProcess:
        as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
        return LocalSpawner().spawn([*(as_nobody if os.geteuid() == 0 else []), *argv], log_path=log_path)


def unshare_pid(rack: VirtualRack) -> int:
    """Return the pid of a rack's outermost process."""
    assert rack._owner is not None
    return rack._owner.process.pid


def inner_namespace(unshare: int) -> str:
    """Return the PID namespace below a rack's outermost process."""
    return namespace_of(children_of(unshare)[0])


_SENDS = """
import socket, sys
with socket.socket(type=socket.SOCK_DGRAM) as sender:
    for _ in range(int(sys.argv[1])):
        sender.sendto(bytes(1000), (sys.argv[2], 9))
"""


def send_packets(rack: VirtualRack, count: int, address: str, folder: Path) -> None:
    """Send packets of 1000 bytes from the rack's host to port 9 of an address."""
    argv = [sys.executable, "-c", _SENDS, str(count), address]
    assert rack.spawn(argv, log_path=folder / "send.log").wait(10) == 0


def port_refuses(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait for an event; the deadline only ends a test that has failed."""
    wait_for(condition, lambda: f"not within {DEADLINE_S:.0f} s: {what}", DEADLINE_S)


def children_of(pid: int) -> list[int]:
    """Return the direct children of a process, by its pid here."""
    return [process.pid for process in all_processes() if process.parent == pid]


def namespace_of(pid: int) -> str:
    return str((Path(f"/proc/{pid}/ns/pid")).readlink())


def members(namespace: str) -> list[int]:
    """Return the processes of a PID namespace, by their pids here."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str((entry / "ns/pid").readlink()) == namespace:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def pid_of(namespace: str, word: str) -> int:
    """Return the pid, here, of the member whose command line contains ``word``."""
    for pid in members(namespace):
        if (process := read_process(pid)) and word in process.name:
            return pid
    raise AssertionError(f"no process with {word!r} in the rack")


def host_traces() -> dict[str, str]:
    """Return what a rack could leave on the host: named namespaces, mounts, network devices."""
    named = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    devices = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout
    return {
        "netns": named,
        "mounts": Path("/proc/self/mountinfo").read_text(),
        "devices": devices,
        "run": str(sorted(Path("/run/netns").iterdir()) if Path("/run/netns").is_dir() else "none"),
    }
