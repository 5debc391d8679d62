# SPDX-License-Identifier: Apache-2.0
"""A small lab for tests: a rack of virtual boards, short suites, `hil` as a real process."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DEADLINE_S = 90.0
PYTEST = [sys.executable, "-m", "pytest", "hil/benches", "-p", "no:cacheprovider"]

_SUITES = re.compile(r"^suites:.*\n(?:(?:[ #].*)?\n)*", re.MULTILINE)  # up to the next key
SUITES = """\
suites:
  quick:
    - {count: 60, warmup: 5, interval_us: 5000, payload_bytes: 128}
  pr:
    - {count: 4000, warmup: 0, interval_us: 20000, payload_bytes: 128}
  some_seconds:
    - {count: 300, warmup: 0, interval_us: 20000, payload_bytes: 128}
  nightly:
    - {transport: [tcp, mtls], qos: [0, 2], count: 50, warmup: 0, interval_us: 5000, payload_bytes: 128}

"""


def own_environment() -> dict[str, str]:
    """Return this process's environment without what would make a test's run part of somebody's CI.

    A busy host may leave a figure undecided, of which a test knows nothing: only what is broken, or was not
    measured, is a status other than 0.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HIL_", "GITHUB_"))}
    return {**kept, "HIL_UNDECIDED_STATUS": "0"}


@dataclass
class Lab:
    """Files of one rack in ``folder``; ``ports`` are those that its boards ask for, if they do."""

    folder: Path
    firmware: Path | None = None
    ports: Sequence[int] = ()
    env: dict[str, str] = field(default_factory=lambda: own_environment())

    @property
    def rack(self) -> Path:
        return self.folder / "rack.yaml"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def temporary(self) -> Path:
        """Where a run keeps its secrets as long as it lasts."""
        return self.folder / "tmp"

    def arguments(self, *more: str, prefix: str = "--") -> list[str]:
        """Return the options of a run in this lab; pytest's have a ``prefix`` of their own."""
        fixed = ["--rack", str(self.rack), f"{prefix}thresholds", str(self.folder / "thresholds")]
        fixed += [f"{prefix}out", str(self.out)]
        return [*fixed, *([f"{prefix}firmware", str(self.firmware)] if self.firmware else []), *more]

    def command(self, *more: str, report: bool = False) -> list[str]:
        """Return the run's command line."""
        no_report = [] if report else ["--no-report"]
        return [sys.executable, "-m", "hil", "run", *self.arguments(*no_report, *more)]

    def pytest(self, *more: str) -> list[str]:
        """Return the command line that measures with pytest alone."""
        return [*PYTEST, *self.arguments(*more, prefix="--hil-")]

    def run(self, *more: str, report: bool = False) -> subprocess.CompletedProcess[str]:
        """Measure, and return what `hil run` said (stdout and stderr together) and its status."""
        return run(self.command(*more, report=report), env=self.env)

    def start(self, *more: str, report: bool = False) -> Running:
        return Running(self.command(*more, report=report), self.folder / "run.txt", self.env)

    def keep_up(self) -> Running:
        """Start `hil virtual up`; the rack is there once it says so. Whoever asked ends it."""
        files = ("--rack", str(self.rack), "--out", str(self.out))
        argv = [sys.executable, "-m", "hil", "virtual", "up", *files]
        return Running(argv, self.folder / "up.txt", self.env)

    def hil(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run([sys.executable, "-m", "hil", *arguments], env=self.env)

    def entries(self) -> list[dict[str, Any]]:
        """Return the journal of the latest run."""
        lines = (self.out / "latest" / "records.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def good_outcome(self) -> str:
        """Return the latest run's outcome as the screen says it: a busy host leaves a good one undecided."""
        outcome = json.loads((self.out / "latest" / "verdicts.json").read_text())["outcome"]
        assert outcome in ("pass", "undecided"), outcome
        return str(outcome).upper()

    def await_nothing_left(self, *processes: Process) -> None:
        """Wait until these processes are gone, none names this lab, its ports are free."""

        def left() -> list[str]:
            alive = [process.name for process in processes if process.alive()]
            named = [process.name for process in all_processes() if str(self.folder) in process.name]
            return alive + named

        wait_for(lambda: not left(), lambda: f"left: {left()}")
        wait_for(lambda: all(is_free(port) for port in self.ports), lambda: "a port is still taken")


@dataclass(frozen=True)
class Process:
    """A process as /proc shows it; its start time tells it from a later one of the same number."""

    pid: int
    parent: int
    started: int
    name: str

    def alive(self) -> bool:
        now = read_process(self.pid)
        return now is not None and now.started == self.started


def read_process(pid: int) -> Process | None:
    """Return a process, None where it is gone or a zombie."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else Process(pid, int(fields[1]), int(fields[19]), words)


def all_processes() -> list[Process]:
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [process for pid in pids if pid != os.getpid() and (process := read_process(pid))]


def descendants(pid: int) -> list[Process]:
    """Return what a process has started, directly or not."""
    everything = all_processes()
    found: list[Process] = []
    parents = {pid}
    while fresh := [one for one in everything if one.parent in parents and one not in found]:
        found += fresh
        parents = {one.pid for one in fresh}
    return found


class Running:
    """A `hil run` in the background; its output goes to a file."""

    def __init__(self, argv: Sequence[str], output: Path, env: dict[str, str]) -> None:
        self.output = output
        with output.open("w") as out:
            self.process = subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT, env=env)

    def said(self) -> str:
        return self.output.read_text()

    def await_line(self, pattern: str) -> str:
        """Wait until the output matches ``pattern``; return the match."""

        def seen() -> bool:
            return bool(re.search(pattern, self.said())) or self.process.poll() is not None

        wait_for(seen, lambda: f"{pattern!r} did not come: {self.said()}")
        match = re.search(pattern, self.said())
        assert match, self.said()
        return match.group()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        return self.process.wait(timeout=DEADLINE_S)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=DEADLINE_S)


def write_suites(folder: Path, wanted: Mapping[str, str]) -> None:
    """Write each bench's thresholds file with the suites that ``wanted`` has for it (YAML), or none."""
    folder.mkdir(exist_ok=True)
    for path in (ROOT / "thresholds").glob("*.yaml"):
        text = wanted.get(path.stem, "suites: {}\n")
        changed, count = _SUITES.subn(lambda _match, text=text: text, path.read_text())
        assert count == 1, path
        (folder / path.name).write_text(changed)


def make_lab(
    folder: Path,
    boards: int,
    *,
    firmware: Path | None = None,
    suites: Mapping[str, str] | None = None,
    ports: Sequence[int] = (),
) -> Lab:
    """Write rack and thresholds; the virtual air that was built before is used again.

    ``suites`` holds the YAML of a bench's suites; benches that it does not name have none. ``ports`` are what
    the boards ask for; without them each rack that is started gives them free ones.
    """
    lab = Lab(folder, firmware, ports)
    lab.temporary.mkdir()
    lab.env["TMPDIR"] = str(lab.temporary)
    text = "schema: 1\nname: lab\nhost: {interface: hil0, address: 10.77.0.1}\n"
    text += "access_point: {type: virtual, profile: lab, seed: 1}\nboards:\n"
    for number in range(1, boards + 1):
        text += f"  - {{id: b{number}, kind: virtual, target: esp32, power: {{type: virtual}},\n"
        text += f"     serial: 'fastrfc2217://127.0.0.1:{ports[number - 1]}',\n" if ports else ""
        text += f"     mac: '02:00:00:77:01:{number:02x}'}}\n"
    lab.rack.write_text(text)
    write_suites(folder / "thresholds", {"publish": SUITES} if suites is None else suites)
    shared = ROOT / "out" / "virtual" / "air"
    shared.mkdir(parents=True, exist_ok=True)
    (lab.out / "virtual").mkdir(parents=True)
    (lab.out / "virtual" / "air").symlink_to(shared)
    return lab


@contextmanager
def folder_of_all() -> Iterator[Path]:
    """A folder that every user may enter. Of pytest's own each start of pytest keeps others out."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o1777)
        yield Path(name)


def run(
    argv: Sequence[str | Path],
    folder: Path = ROOT,
    *,
    env: Mapping[str, str] | None = None,
    timeout_s: float = DEADLINE_S,
) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder to its end; its stdout holds stderr too."""
    return subprocess.run(
        list(map(str, argv)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder,
        env=env, timeout=timeout_s, check=False,
    )  # fmt: skip


def path_without(program: str) -> str:
    """Return PATH without the folders that have a program, or that this user may not look into."""
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(one for one in folders if not shutil.which(program, path=one))


def free_ports(count: int) -> list[int]:
    """Return ports that were free a moment ago, from below the range that the kernel hands out by itself."""
    found: list[int] = []
    start = 20000 + os.getpid() % 10000
    for port in range(start, start + 2000):
        if is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise AssertionError("no free ports")


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def wait_for(condition: Callable[[], bool], what: Callable[[], str], deadline_s: float = DEADLINE_S) -> None:
    """Wait for a condition; fail with ``what`` after the deadline."""
    deadline = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.01)


def of_type(entries: Iterable[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [entry for entry in entries if entry["type"] == kind]
