# SPDX-License-Identifier: Apache-2.0
"""Race for boards of two racks at one labgrid coordinator, and kill whatever takes part.

Each round is a process that leases boards as `hil run` does, with a keeper of its own. Meanwhile runs,
keepers, both at once, exporters and the coordinator are killed at random and started again. The witness knows
nothing of labgrid: whoever has a board holds a kernel lock on the board's file, so where the lock is taken,
two have it. Exit 1 where two had one, or a board cannot be leased at the end.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hil.base.errors import HilError
from hil.boards.places.lease import lease_places
from hil.boards.places.settings import read_places
from tests.boards.farm import LABGRID, Farm, farm_in
from tests.lab import descendants
from tools.bench.figure import SHORT_PASS

ROUNDS, SHORT_ROUNDS = 1000, 24
BOARDS = 3  # of each rack
RUNS = 6  # at a time
HOLD_S = 1.0  # at most
WAIT_S = 8.0  # patience, at most
AFTER_RESTART_S = 15.0  # a double lease so soon is counted as one of the restart, too
QUIET_S = 60.0  # labgrid looks every 15 s for what a dead exporter left
WANTED = (  # what a run asks for: one board, a rack, any two
    "match: {board: b1}",
    "match: {board: b4}",
    "match: {exporter: exporter-1}",
    "match: {exporter: exporter-2}, count: 2",
    "match: {rack: lab}, count: 2",
    "match: {rack: lab}, count: 1",
)
REASONS = (
    "is taken by",
    "does not answer",
    "was taken meanwhile",
    "has no serial port",
    "its keeper ended",
    "failed: UNAVAILABLE",
)
# what is killed, and after how many rounds in the mean
KILLS = {"run": 5, "keeper": 8, "run and keeper": 8, "exporter": 40, "coordinator": 25}


@dataclass
class Race:
    """The state of the race; ``runs`` are the processes of the rounds under way."""

    farm: Farm
    chance: random.Random
    racks: list[Path]
    exporters: list[subprocess.Popen[bytes]]
    coordinator: subprocess.Popen[bytes]
    runs: dict[int, Path] = field(default_factory=dict)
    said: Counter[str] = field(default_factory=Counter)
    killed: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    restarted: float = -AFTER_RESTART_S

    def round(self) -> None:
        """Start a round, in a process of its own, and end those that are over."""
        while len(self.runs) >= RUNS:
            self.reap()
        report = self.farm.folder / f"round-{time.monotonic_ns()}"
        rack, wait_s = self.chance.choice(self.racks), self.chance.choice((0.0, WAIT_S))
        hold_s = self.chance.uniform(0.0, HOLD_S)
        pid = os.fork()
        if not pid:
            with suppress(BaseException):
                take_part(rack, self.farm.folder, report, wait_s, hold_s)
            os._exit(0)
        self.runs[pid] = report

    def reap(self) -> None:
        """Wait until a round is over, and note what it said."""
        pid, status = os.wait()
        report = self.runs.pop(pid, None)
        if report is None:
            return
        lines = report.read_text().splitlines() if report.exists() else []
        self.said.update(line.split(":")[0] for line in lines)
        self.refusals.update(reason(line) for line in lines if line.startswith("refused"))
        for line in lines:
            if line.startswith("double"):
                soon = time.monotonic() - self.restarted < AFTER_RESTART_S
                self.said["double after a restart"] += soon
                print(line, "(after a restart)" if soon else "", flush=True)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGTERM:
            self.said["ended"] += 1
        report.unlink(missing_ok=True)

    def hurt(self) -> None:
        """Kill something, now and then."""
        for what, every in KILLS.items():
            if self.chance.random() < 1 / every:
                self.kill(what)

    def kill(self, what: str) -> None:
        if what == "exporter":
            number = self.chance.randrange(len(self.exporters))
            end(self.exporters[number])
            self.exporters[number] = self.start_exporter(number)
        elif what == "coordinator":
            end(self.coordinator)
            self.restarted = time.monotonic()
            self.coordinator = self.farm.start_coordinator()
            for number, exporter in enumerate(self.exporters):
                end(exporter)
                self.exporters[number] = self.start_exporter(number)
        elif not self.kill_run(what):
            return
        self.killed[what] += 1

    def kill_run(self, what: str) -> bool:
        """Kill a run, its keeper, or both; whether there was one."""
        if not self.runs:
            return False
        holding = [pid for pid, report in self.runs.items() if report.exists() and report.stat().st_size]
        run = self.chance.choice(holding if holding and self.chance.random() < 0.7 else list(self.runs))
        keepers = [process.pid for process in descendants(run)]
        if what != "run" and not keepers:
            return False
        with suppress(ProcessLookupError):
            if what == "run and keeper":
                os.kill(run, signal.SIGSTOP)  # else either would tidy up between the kills
            for pid in keepers if what != "run" else []:
                os.kill(pid, signal.SIGKILL)
            if what != "keeper":
                os.kill(run, signal.SIGKILL)
        return True

    def start_exporter(self, number: int) -> subprocess.Popen[bytes]:
        name = f"exporter-{number + 1}"
        options = ["-c", self.farm.address, "-n", name, "--hostname", "127.0.0.1", f"{name}.yaml"]
        return self.farm.start("labgrid-exporter", *options, ready="Exporter ready")


def take_part(rack: Path, folder: Path, report: Path, wait_s: float, hold_s: float) -> None:
    """Lease, hold the witness of each board, release by ending."""
    told = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the keeper's words
    settings = read_places(rack)
    assert settings
    try:
        leased = lease_places(rack, settings, folder / "out", wait_s=wait_s)
    except HilError as error:
        os.write(told, f"refused: {error}\n".encode())
        return
    os.write(told, b"leased\n")
    witnesses = []
    for board in re.findall(r"\bid: (b\d+)", leased.read_text()):
        witness = os.open(folder / f"{board}.witness", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(witness, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.write(told, f"double: {board}, which {os.pread(witness, 100, 0).decode()} has\n".encode())
        os.pwrite(witness, f"{os.getpid()} ".encode(), 0)
        witnesses.append(witness)
    time.sleep(hold_s)
    for witness in witnesses:
        os.close(witness)


def reason(line: str) -> str:
    return next((words for words in REASONS if words in line), line)


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def run_race(folder: Path, rounds: int, seed: int) -> tuple[Race, list[str]]:
    """Return the race when it is over, and the boards that nobody can lease any more."""
    with farm_in(folder) as farm:
        boards = [farm.boards_rack(BOARDS, name=f"lab{n}", first=n * BOARDS + 1) for n in range(2)]
        exporters = farm.export_all(boards)
        racks = [farm.places_rack(wanted, name=f"places-{n}") for n, wanted in enumerate(WANTED)]
        race = Race(farm, random.Random(seed), racks, exporters, farm.started[0])
        started = 0
        while started < rounds:
            race.round()
            started += 1
            race.hurt()
            if started % 100 == 0:
                print(f"{started} rounds, {dict(race.said)}", flush=True)
        while race.runs:
            race.reap()
        return race, stuck(farm)


def stuck(farm: Farm) -> list[str]:
    """Return the boards that cannot be leased although every run is over."""
    found = []
    for number in range(1, 2 * BOARDS + 1):
        rack = farm.places_rack(f"match: {{board: b{number}}}", name="last")
        holder = farm.hold(rack, wait_s=QUIET_S)
        assert holder.stdout
        if not (said := holder.stdout.readline()).startswith("leased"):
            found.append(f"b{number}: {said.strip()}")
        holder.communicate()
    return found


def count(counted: Counter[str]) -> str:
    return ", ".join(f"{number} {what}" for what, number in counted.most_common())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--short", action="store_true", help=f"{SHORT_ROUNDS} rounds")
    options = parser.parse_args(arguments)
    rounds = SHORT_ROUNDS if options.short else options.rounds
    os.environ["PATH"] = f"{LABGRID}:{os.environ['PATH']}"
    if options.short:
        print(SHORT_PASS, flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        race, left = run_race(Path(folder), rounds, options.seed)
    print(f"rounds: {rounds}, two racks of {BOARDS} boards, {RUNS} runs at a time, seed {options.seed}")
    print(f"leases: {race.said['leased']}")
    print(f"refusals: {race.said['refused']} ({count(race.refusals)})")
    print(f"kills: {sum(race.killed.values())} ({count(race.killed)})")
    print(f"runs that their keeper's end, or a lost place, ended: {race.said['ended']}")
    after = race.said["double after a restart"]
    print(f"double leases: {race.said['double']} (of these after a restart: {after})")
    print(f"places stuck at the end: {len(left)} {left or ''}")
    print(f"took {time.monotonic() - began:.0f} s")
    return int(bool(race.said["double"] or left))


if __name__ == "__main__":
    sys.exit(main())
