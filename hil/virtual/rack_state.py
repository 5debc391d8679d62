# SPDX-License-Identifier: Apache-2.0
"""A virtual rack's folder: who holds it, what is in it, and what a killed run left behind."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from hil.base.errors import RigError
from hil.base.flock import try_lock
from hil.model import Kind

RELEASE_TIMEOUT_S = 5.0
POLL_S = 0.02


@dataclass(frozen=True)
class VirtualBoardSpec:
    """A virtual board, or an emulated one: ``port`` is its RFC2217 port on the caller's loopback, 0 = any
    free one; ``pace`` makes a virtual one's UART as slow as its baud rate; ``emulator`` runs an emulated one,
    which has a ``network`` of this type. ``ssid`` is the only network that its station finds, "" where each
    name is answered."""

    id: str
    chip: str = "esp32"
    mac: str = "24:0a:c4:00:00:01"
    port: int = 0
    pace: bool = False
    kind: Kind = "virtual"
    emulator: str = ""
    network: str = ""
    ssid: str = ""
    password: str = ""

    @property
    def is_bridged(self) -> bool:
        """Whether its frames go to the air as they are, with an address of its own."""
        return self.kind == "emulated" and self.network != "wifi"


@dataclass(frozen=True)
class RackHolder:
    """Who keeps a rack: what rack.json holds while the rack lives. Ports are the real ones."""

    name: str
    pid: int
    since: str
    boards: tuple[VirtualBoardSpec, ...]


@dataclass(frozen=True)
class RackPaths:
    """The files of one rack; everything lies in its state folder."""

    folder: Path

    @property
    def lock(self) -> Path:
        return self.folder / "rack.lock"

    @property
    def holder(self) -> Path:
        return self.folder / "rack.json"

    @property
    def supervisor_socket(self) -> Path:
        return self.folder / "supervisor.sock"

    @property
    def air_socket(self) -> Path:
        return self.folder / "air.sock"

    @property
    def supervisor_log(self) -> Path:
        return self.folder / "supervisor.log"

    @property
    def air_log(self) -> Path:
        return self.folder / "air.log"

    def board_socket(self, board_id: str) -> Path:
        return self.folder / f"{board_id}.sock"

    def board_log(self, board_id: str) -> Path:
        return self.folder / f"{board_id}.log"

    def board_flash(self, board_id: str) -> Path:
        """The flash outlives the rack, as a board's does."""
        return self.folder / f"{board_id}.flash"


def write_holder(paths: RackPaths, name: str, boards: Sequence[VirtualBoardSpec]) -> None:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    record = asdict(RackHolder(name, os.getpid(), since, tuple(boards)))
    part = paths.holder.with_suffix(".part")
    part.write_text(json.dumps(record))
    part.replace(paths.holder)


def read_holder(paths: RackPaths) -> RackHolder | None:
    """Return the holder's record, None where there is none or it is torn."""
    try:
        record = json.loads(paths.holder.read_text())
        boards = tuple(VirtualBoardSpec(**board) for board in record.pop("boards"))
        return RackHolder(**record, boards=boards)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def is_held(paths: RackPaths) -> bool:
    """Return whether a rack lives in this folder."""
    if not paths.lock.exists():
        return False
    with paths.lock.open("a") as lock:
        return not try_lock(lock.fileno())


def take_lock(paths: RackPaths, name: str) -> int:
    """Lock the folder and return the descriptor. Raises RigError naming the holder where a rack lives.

    A rack whose starter was killed takes some milliseconds to vanish; that is waited for.
    """
    paths.folder.mkdir(parents=True, exist_ok=True)
    fd = os.open(paths.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + RELEASE_TIMEOUT_S
    while not try_lock(fd):
        holder = read_holder(paths)
        if (holder is None or _alive(holder.pid)) and time.monotonic() > deadline - RELEASE_TIMEOUT_S + 0.2:
            os.close(fd)
            raise _held(name, holder)
        if time.monotonic() > deadline:
            os.close(fd)
            raise _held(name, holder)
        time.sleep(POLL_S)
    return fd


def clean(paths: RackPaths) -> bool:
    """Remove what a killed run left; returns whether there was something."""
    stale = paths.holder.exists()
    patterns = ("*.sock", "*.log", "*.elf", "*.timeline.json")
    leftovers = [paths.holder, *(path for pattern in patterns for path in paths.folder.glob(pattern))]
    for path in leftovers:
        path.unlink(missing_ok=True)
    return stale


def retry_until(deadline_s: float, attempt: Callable[[], bool]) -> bool:
    """Call ``attempt`` until it succeeds or ``deadline_s`` seconds have passed."""
    deadline = time.monotonic() + deadline_s
    while not attempt():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def _held(name: str, holder: RackHolder | None) -> RigError:
    who = f"process {holder.pid} since {holder.since}" if holder else "another process, which is starting it"
    step = f"wait for it, or end it: kill {holder.pid}." if holder else "try again in a moment."
    return RigError(f"Starting the virtual rack {name!r}: it is already running in {who}.", next_step=step)


def _alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
