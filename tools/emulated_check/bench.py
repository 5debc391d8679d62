# SPDX-License-Identifier: Apache-2.0
"""A rack of two emulated chips, runs on it with a deadline, and what they left in their journals."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import RigError
from hil.base.paths import PROJECT_ROOT
from tests.lab import Lab, Running, make_lab
from tools.emulated_check.inputs import CHIP, NAME, Inputs

BOARDS = ("e1", "e2")
RUN_S = 900.0  # a run; the longest flashes two boards and measures the suite quick
STEP_S = 240.0  # what a run says next
SUITES = """\
suites:
  quick:
    - {count: 100, warmup: 5, interval_us: 20000, payload_bytes: 128}
  nightly:
    - {count: 400, warmup: 0, interval_us: 20000, payload_bytes: 128}

"""
MEASURING = r"(e\d) \[0/1\b[^]]*\] measuring"

_RACK = """\
schema: 1
name: lab
host: {interface: hil0, address: 10.77.0.1}
access_point: {type: virtual, profile: lab, seed: 1}
boards:
"""
_BOARD = """\
  - {{id: {id}, kind: emulated, target: {chip}, emulator: {emulator}, power: {{type: virtual}}, mac: "{mac}"}}
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended, what it said, and the folder of its run, None where it made none."""

    status: int
    said: str
    run: Path | None = None

    @property
    def last_line(self) -> str:
        lines = [line.strip() for line in self.said.splitlines() if line.strip()]
        return lines[-1] if lines else "nothing"

    @property
    def entries(self) -> list[dict[str, Any]]:
        """The journal."""
        path = self.run / "records.jsonl" if self.run else None
        return [json.loads(line) for line in path.read_text().splitlines()] if path and path.exists() else []

    @property
    def verdict(self) -> dict[str, Any]:
        path = self.run / "verdicts.json" if self.run else None
        return dict(json.loads(path.read_text())) if path and path.exists() else {}

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        return [entry for entry in self.entries if entry["type"] == kind]


class Bench:
    """The rack and its runs, in ``folder``, which is made anew."""

    def __init__(self, folder: Path, inputs: Inputs) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.inputs = inputs
        self.lab: Lab = make_lab(
            folder, len(BOARDS), firmware=inputs.firmware.build_dir, suites={"publish": SUITES}
        )
        macs = {board: f"02:00:00:77:02:{number:02x}" for number, board in enumerate(BOARDS, start=1)}
        self.lab.rack.write_text(
            _RACK
            + "".join(
                _BOARD.format(id=board, chip=CHIP, emulator=NAME, mac=mac) for board, mac in macs.items()
            )
        )
        self.lab.env |= {name: value for name, value in os.environ.items() if name.startswith("HIL_QEMU_")}

    @property
    def sockets(self) -> Path:
        """The folder of the boards' control sockets while a run has the rack."""
        return self.lab.out / "virtual" / "lab" / BOARDS[0]

    def run(self, *more: str) -> Ended:
        """Run `hil run` to its end."""
        return self._ended(self.lab.command(*more))

    def cost(self, *more: str) -> Ended:
        """Run `hil cost` to its end: it takes no rack."""
        given = ["--firmware", str(self.inputs.firmware.build_dir), "--out", str(self.lab.out)]
        return self._ended([sys.executable, "-m", "hil", "cost", *given, "--no-report", *more])

    @contextmanager
    def running(self, *more: str) -> Iterator[Running]:
        """Start `hil run`; whatever happens, it has ended afterwards."""
        started = Running(self.lab.command(*more), self.lab.folder / "run.txt", self.lab.env)
        try:
            yield started
        finally:
            end(started)

    def latest(self, status: int, said: str) -> Ended:
        link = self.lab.out / "latest"
        return Ended(status, said, link.resolve() if link.exists() else None)

    def _ended(self, argv: list[str]) -> Ended:
        done = subprocess.run(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=PROJECT_ROOT,
            env=self.lab.env, timeout=RUN_S, check=False,
        )  # fmt: skip
        return self.latest(done.returncode, done.stdout)


def await_match(running: Running, pattern: str) -> re.Match[str]:
    """Wait until what a run says matches ``pattern``. Raises RigError where it ends first, or does not."""
    deadline = time.monotonic() + STEP_S
    while not (found := re.search(pattern, running.said())):
        if running.process.poll() is not None or time.monotonic() > deadline:
            raise RigError(f"the run did not say {pattern!r}; it said last: {tail(running)}")
        time.sleep(0.02)
    return found


def tail(running: Running) -> str:
    return " ".join(running.said().split()[-25:])


def end(running: Running) -> None:
    """Interrupt a run; kill it where that does not help."""
    if running.process.poll() is None:
        running.send(signal.SIGINT)
        try:
            running.wait()
        except subprocess.TimeoutExpired:
            running.close()


@contextmanager
def busy_cores() -> Iterator[int]:
    """Keep every core of the host busy; yield how many loops do it."""
    count = os.cpu_count() or 1
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield count
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
