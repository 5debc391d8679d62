# SPDX-License-Identifier: Apache-2.0
"""The rack that is broken, two virtual boards that are kept up; and what must not be left of a run."""

from __future__ import annotations

import hashlib
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hil.virtual.air.control import AirControl
from hil.virtual.board.client import BoardControl
from hil.virtual.rack_state import RackPaths
from tests.lab import Lab, Process, Running, all_processes, descendants, make_lab, wait_for

if TYPE_CHECKING:
    from tools.chaos.trial import Trial

BOARDS = ("b1", "b2")
COMES_S = 10.0  # for a part that is started as a case begins
LINGERS_S = 5.0  # what the design grants to cleaning up
SUITES = {
    "publish": "suites:\n"
    "  quick:\n    - {count: 60, warmup: 5, interval_us: 5000, payload_bytes: 128}\n"
    "  pr:\n    - {count: 150, warmup: 5, interval_us: 20000, payload_bytes: 128}\n"
    "  zero:\n    - {qos: 0, count: 150, warmup: 5, interval_us: 20000, payload_bytes: 128}\n"
    "  large:\n    - {count: 150, warmup: 5, interval_us: 20000, payload_bytes: 1024}\n"
    "  first:\n    - {transport: mtls, count: 100, warmup: 5, interval_us: 20000, payload_bytes: 128}\n\n",
    "throughput": "suites:\n  nightly:\n    - {role: client, duration_s: 3, omit_s: 1}\n\n",
    "http_gateway": "suites:\n  nightly:\n"
    "    - {resolve: address, reads: 60, reads_after_reconnect: 20, timeout_ms: 300}\n"
    "    - {resolve: name, reads: 60, reads_after_reconnect: 20}\n\n",
}
PASSWORD = "nobody-shall-see-this"  # for the broker, of a run that is let draw it
SECRETS = (b"PRIVATE KEY", b"in the virtual air", PASSWORD.encode())


class Ground:
    """A lab in a folder of its own. ``firmware`` is the image that is measured, ``slower`` another one.

    Where the rack is not kept up, each run has one of its own, which must go with it.
    """

    def __init__(self, firmware: Path, slower: Path, *, keeps_rack: bool = True) -> None:
        self.slower_firmware, self.keeps_rack = slower, keeps_rack
        self.lab: Lab = make_lab(Path(tempfile.mkdtemp(prefix="hil-chaos-")), len(BOARDS), suites=SUITES)
        self.firmware = firmware
        self.lab.firmware = firmware
        self._rack: Running | None = None
        self.run_s = 6.0  # that the last quick run took which passed

    @property
    def folder(self) -> Path:
        return self.lab.folder

    @property
    def paths(self) -> RackPaths:
        return RackPaths(self.lab.out / "virtual" / "lab" / "up")

    @property
    def rack_pid(self) -> int:
        assert self._rack is not None
        return self._rack.process.pid

    @property
    def air(self) -> AirControl:
        return AirControl(self.paths.air_socket)

    def board(self, board_id: str = "b1") -> BoardControl:
        return BoardControl(self.paths.board_socket(board_id))

    def raise_rack(self) -> None:
        """Keep the rack up; nothing where it is."""
        if not self.keeps_rack or (self._rack and self._rack.process.poll() is None):
            return
        self._rack = self.lab.keep_up()
        self._rack.await_line("The virtual rack is up")

    def end_rack(self) -> None:
        """End the rack and wait for it, whatever state it is in."""
        if self._rack is None:
            return
        family = descendants(self._rack.process.pid)
        if self._rack.process.poll() is None:
            self._rack.send(signal.SIGCONT)
            self._rack.send(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self._rack.process.wait(timeout=LINGERS_S)
        self._rack.close()
        self._rack = None
        wait_for(lambda: not any(process.alive() for process in family), lambda: "the rack did not end")

    def part(self, word: str) -> Process:
        """Return the newest process of the rack, or of the run on it, whose command line has ``word``."""
        found: list[Process] = []

        def is_there() -> bool:
            found[:] = [process for process in self.processes() if word in process.name]
            return bool(found)

        wait_for(is_there, lambda: f"no {word!r} came", COMES_S)
        return found[-1]

    def processes(self) -> list[Process]:
        """Return what runs with this lab's temporary folder in its environment, or names the lab."""
        return [process for process in all_processes() if self._is_ours(process)]

    def _is_ours(self, process: Process) -> bool:
        if str(self.folder) in process.name:
            return True
        try:
            return str(self.folder).encode() in Path(f"/proc/{process.pid}/environ").read_bytes()
        except OSError:
            return False

    def records(self) -> Mapping[Path, Sequence[str]]:
        """Return every whole line of every journal: a run has acknowledged it, and it must stay."""
        return {path.resolve(): whole_lines(path) for path in sorted(self.lab.out.glob("2*/records.jsonl"))}

    def copy_firmware(self, trial: Trial) -> Path:
        """Let a run measure a copy of the image, which may be spoilt; returns its folder."""
        folder = self.folder / "image" / self.firmware.name
        shutil.rmtree(folder.parent, ignore_errors=True)
        shutil.copytree(self.firmware, folder)
        trial.more += ["--firmware", str(folder)]
        return folder

    def copy_air(self, out: Path) -> None:
        """Give a run with results elsewhere the virtual air that is built."""
        shutil.copytree(self.lab.out / "virtual" / "air", out / "virtual" / "air")

    def stored_run(self) -> Path:
        """Return the folder of a run that passed; one is made where there is none."""
        for path in sorted(self.lab.out.glob("2*/verdicts.json"), reverse=True):
            if '"outcome": "pass"' in path.read_text():
                return path.parent
        self.lab.run("--suite", "quick")
        return (self.lab.out / "latest").resolve()

    def remove(self) -> None:
        self.end_rack()
        shutil.rmtree(self.folder, ignore_errors=True)


def whole_lines(path: Path) -> list[str]:
    """Return a digest of each line of a journal that is not torn."""
    try:
        data = path.read_bytes()
    except OSError:
        return []
    return [hashlib.sha256(line).hexdigest() for line in data.split(b"\n")[:-1]]


@dataclass(frozen=True)
class Around:
    """What lies and runs around a rack at one moment."""

    processes: frozenset[tuple[int, int]]
    namespaces: frozenset[str]
    locks: frozenset[str]
    temporary: frozenset[str]

    @classmethod
    def nothing(cls) -> Around:
        return cls(frozenset(), frozenset(), frozenset(), frozenset())

    @classmethod
    def of(cls, ground: Ground) -> Around:
        ours = ground.processes()
        return cls(
            frozenset((process.pid, process.started) for process in ours),
            frozenset(_namespaces(ours)),
            frozenset(_locks_below(ground.folder)),
            frozenset(path.name for path in ground.lab.temporary.iterdir()),
        )


def left_behind(ground: Ground, before: Around) -> list[str]:
    """Return what has come since ``before`` and does not go within the time that cleaning up may take."""
    deadline = time.monotonic() + LINGERS_S
    while (found := _new(ground, before)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def _new(ground: Ground, before: Around) -> list[str]:
    now = Around.of(ground)
    names = {(process.pid, process.started): process.name for process in ground.processes()}
    return [
        *(f"process {names.get(one, one)}"[:120] for one in sorted(now.processes - before.processes)),
        *(f"namespace {one}" for one in sorted(now.namespaces - before.namespaces)),
        *(f"lock {one}" for one in sorted(now.locks - before.locks)),
        *(f"file in TMPDIR {one}" for one in sorted(now.temporary - before.temporary)),
        *(f"file {path.name}" for path in ground.lab.out.iterdir() if path.name.startswith(".")),
    ]


def _namespaces(processes: Sequence[Process]) -> set[str]:
    found = set()
    for process in processes:
        try:
            found.add(str(Path(f"/proc/{process.pid}/ns/net").readlink()))
        except OSError:
            continue
    return found


def _locks_below(folder: Path) -> list[str]:
    """Return the files below ``folder`` that somebody holds a lock on, as the kernel lists them."""
    held = {line.split()[5].split(":")[2] for line in Path("/proc/locks").read_text().splitlines()
            if "->" not in line}  # fmt: skip
    found = []
    for path in folder.rglob("*"):
        try:
            if path.is_file() and str(path.stat().st_ino) in held:
                found.append(str(path.relative_to(folder)))
        except OSError:
            continue
    return found


def secrets_below(folder: Path) -> list[str]:
    """Return the files of a run that hold a secret."""
    found = []
    for path in folder.rglob("*") if folder.exists() else ():
        if path.is_file() and path.stat().st_size < 20_000_000:
            data = path.read_bytes()
            found += [f"secret in {path.name}" for secret in SECRETS if secret in data]
    return found
