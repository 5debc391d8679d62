# SPDX-License-Identifier: Apache-2.0
"""One fault during one run, made at its moment, lifted after it; what was said, and what was left."""

from __future__ import annotations

import hashlib
import json
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

from hil.base.errors import HilError
from tests.lab import Running
from tools.chaos.fault import MOMENTS, Fault, Owner
from tools.chaos.ground import BOARDS, Around, Ground, left_behind, secrets_below, whole_lines

PATIENCE_S = 600.0  # a board that talks and never says hello: boots of 60 s, and what is tried against it
LOOK_S = 0.1
ATTEMPTS = 3  # of a run with nothing wrong, on a host that three racks share
# what a run says where the host let its parts not run in time
_BUSY_HOST = r"stood still|gave no answer|late"
_PROGRESS = re.compile(r"b\d \[\d")
NOT_TRIED = "not tried"  # after a slower firmware: the same fault has been tried without
_OWNERS: Mapping[int, Owner] = {0: "nobody", 2: "configuration", 3: "rig", 4: "undecided"}
_NOT_MADE = (AssertionError, OSError, HilError, subprocess.SubprocessError)  # of a fault
_INTERRUPTED = (130, 143, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP, 129, -signal.SIGQUIT)


@dataclass
class Row:
    """What came of a fault. ``wrong`` is why the row is wrong; empty where all is as it has to be."""

    fault: str
    moment: str
    reported: str
    owner: str
    status: int
    recovered: str
    recovery_s: float
    lost: int
    left: list[str]
    next_run: str
    wrong: list[str] = field(default_factory=list)
    judged: str = ""  # by what: Plan.judge

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)


@dataclass(frozen=True)
class Plan:
    """What a trial makes: a fault or a pair. ``slower``: of a firmware that is, which has to be found."""

    faults: Sequence[Fault]
    slower: bool = False

    @property
    def name(self) -> str:
        faults = " + ".join(f"{fault.family}: {fault.name}" for fault in self.faults)
        return f"{faults}, slower firmware" if self.slower else faults

    @property
    def judge(self) -> str:
        """Return what a row of it was judged by, as a digest: one of another judge's is made again."""
        said = [(one.moment, tuple(one.owners), one.says, one.suite) for one in self.faults]
        return hashlib.sha256(repr(said).encode()).hexdigest()[:8]

    def owners(self, made: Sequence[Fault]) -> set[str]:
        """Return the owners that a run may name for the faults that occurred."""
        if self.slower:
            return {"a regression"}
        allowed: set[str] = {owner for fault in made for owner in fault.owners}
        if len(self.faults) > 1 and any("nobody" not in fault.owners for fault in made):
            allowed.discard("nobody")
        return allowed


class Trial:
    """One fault, or a pair, and one run. ``chance`` is the trial's own, by seed, name and ``turn``.

    A fault may change ``env``, ``more`` (the run's further options), ``before`` (what the command is run by)
    and ``report`` (whether it is built) before the run starts.
    """

    def __init__(self, ground: Ground, plan: Plan, seed: int, turn: int = 1) -> None:
        self.ground = ground
        self.plan = plan
        self.turn = turn
        self.faults = sorted(plan.faults, key=lambda fault: list(MOMENTS).index(fault.moment))
        self.chance = random.Random(f"{seed} {plan.name} {turn}")
        self.env = dict(ground.lab.env)
        self.more: list[str] = []
        self.before: list[str] = []
        self.report = False
        self.made: list[Fault] = []  # what came about; of a pair, one may end the run before the other
        self.found: list[str] = []  # what a fault has noticed that must not be
        self.victim = ""  # of a kill: what was alive at its moment, and was chosen
        self.owners: Sequence[Owner] = ()  # where a fault knows only at its moment whose it may be
        self.recovered = ""  # where a fault knows how
        self.records = Acknowledged(self)
        self._over = threading.Event()  # the run is
        self._meanwhile: list[threading.Thread] = []
        self.running: Running | None = None
        self.missed = ""  # what came too late for the run
        self.injected_s = 0.0
        self.began_s = self.waited_s = 0.0  # the run; for a fault at any time, since then

    @property
    def lab_folder(self) -> Path:
        return self.ground.folder

    @property
    def outs(self) -> list[Path]:
        """Where results are: the lab's, and what the run was told instead."""
        told = [Path(word) for option, word in pairwise(self.more) if option == "--out"]
        return [out.resolve() for out in (self.ground.lab.out, *told)]

    @property
    def running_still(self) -> bool:
        return self.running is not None and self.running.process.poll() is None

    @property
    def run_pid(self) -> int:
        assert self.running is not None
        return self.running.process.pid

    def once(self, pattern: str, do: Callable[[], object]) -> None:
        """Do something as soon as the run, which need not have begun, says ``pattern``; in a thread."""

        def wait() -> None:
            while not (self.running and re.search(pattern, self.running.said())):
                if self._over.wait(0.02):
                    self.found.append(f"the run never said {pattern!r}")
                    return
            try:
                do()
            except _NOT_MADE as error:
                self.found.append(f"the fault could not be made: {error}")

        self._meanwhile.append(threading.Thread(target=wait))
        self._meanwhile[-1].start()

    def go(self) -> Row:
        """Make the fault, wait for the run, lift it, measure once more; return what came of it."""
        ground = self.ground
        if self.plan.slower:
            self.more += ["--firmware", str(ground.slower_firmware)]
        ground.raise_rack()
        around = Around.of(ground)
        with self.records, ExitStack() as lifted:
            self.missed = self._run_with_faults(lifted)
            status = self._status()
            said = self.running.said() if self.running else ""
            lost = self.records.lost()  # while a disk of its own is there
            owner, sentence = self._owner(status), _last_sentence(said)
            told = secrets_below(self.outs[-1] / "latest")
        left = self._mend(around) + told
        lost = max(lost, self.records.lost())
        next_run, recovery_s = self._measure_again() if not self.plan.slower else (NOT_TRIED, 0.0)
        row = Row(
            self.plan.name,
            f"{self.victim}, after {self.waited_s:.1f} s"
            if self.victim
            else (self.made or self.faults)[-1].moment + (", second try" if self.turn > 1 else ""),
            sentence,
            owner,
            status,
            self.recovered or _recovered(owner, next_run),
            round(recovery_s, 1),
            lost,
            left,
            next_run,
        )
        row.wrong = [*self.found, *([self.missed] if self.missed else []), *self._wrong(row, said)]
        return row

    def _owner(self, status: int) -> str:
        """Return the owner that the run names for the fault."""
        out = self.outs[-1]
        if status in _INTERRUPTED:
            return "interrupted"
        if status == 1:
            owners = {entry["owner"] for entry in _entries(out) if entry["type"] == "fault"}
            return "firmware" if "firmware" in owners else "a regression"
        has_run = self.faults[-1].command is None  # else the newest run is one before it
        # which HIL_UNDECIDED_STATUS lets pass here
        if status == 0 and has_run and outcome(out) == "undecided":
            return "undecided"
        return _OWNERS.get(status, "a crash")

    def says_nothing(self, row: Row) -> bool:
        """Return whether the trial's row is wrong only by chance: the run was over before its fault, or
        a busy host left undecided what has to pass."""
        if self.found or row.lost or row.left or "a traceback" in row.wrong:
            return False
        allowed = self.plan.owners(self.made) if self.made or self.plan.slower else {"nobody", "undecided"}
        late = bool(self.missed) and row.owner in allowed
        busy = row.owner == "undecided" and allowed == {"nobody"}
        return (late or busy) and row.next_run.startswith(("yes", NOT_TRIED))

    def _mend(self, around: Around) -> list[str]:
        """Return what is left of the run; after it no fault is on, and the rack is up, if one is kept."""
        ground = self.ground
        if not ground.keeps_rack:
            return left_behind(ground, around)
        if any(fault.own_rack for fault in self.faults):
            ground.end_rack()
            left = left_behind(ground, Around.nothing())
            ground.raise_rack()
            return left
        for board in BOARDS:
            ground.board(board).clear()
        return left_behind(ground, around)

    def _run_with_faults(self, lifted: ExitStack) -> str:
        """Start the run and make each fault at its moment; return what did not come about."""
        missed = ""
        try:
            missed = self._make_faults(lifted)
        except _NOT_MADE as error:
            self.found.append(f"the fault could not be made: {error}")
        self._status()  # before anything is lifted
        self._over.set()
        for thread in self._meanwhile:
            thread.join()
        return missed

    def _make_faults(self, lifted: ExitStack) -> str:
        for fault in (one for one in self.faults if one.moment == "before"):
            self._make(fault, lifted)
        self.start()
        later = (fault for fault in self.faults if fault.moment != "before")
        for moment, group in groupby(later, key=lambda fault: fault.moment):
            faults = list(group)
            if moment == "any":
                self._await_any_time()
            elif not self._await(MOMENTS[moment]):
                return f"the run ended before it was {moment}"
            if moment == "measuring":
                time.sleep(self.chance.uniform(0.1, 1.0))
            with ThreadPoolExecutor() as pool:  # at once: some take a while, and may end the run
                list(pool.map(lambda fault: self._make(fault, lifted), faults))
            late = [fault.name for fault in faults if fault not in self.made]
            if late and all(fault.recovers for fault in self.made):  # none of them has ended the run
                return f"the run ended before there was: {late[0]}"
        return ""

    def _await_any_time(self) -> None:
        """Wait for a moment of the run that chance chooses; one that ends before it is run again."""
        most_s = self.ground.run_s
        while True:
            time.sleep(self.chance.uniform(0.0, most_s))
            if self.running_still:
                return
            most_s *= 0.8
            self.start()

    def start(self) -> None:
        """Start the run; once more where it has ended."""
        self.began_s = time.monotonic()
        self.running = Running(self._argv(), self.lab_folder / "run.txt", self.env)

    def _make(self, fault: Fault, lifted: ExitStack) -> None:
        if self.running and fault.moment != "any" and not self.running_still:
            return
        self.injected_s = time.monotonic()
        lifted.enter_context(fault.act(self))
        self.made.append(fault)

    def _argv(self) -> list[str]:
        command = self.faults[-1].command
        if command:
            return [*self.before, sys.executable, "-m", "hil", *command(self)]
        suite = next((fault.suite for fault in self.faults if fault.suite != "quick"), self._suite())
        return [*self.before, *self.ground.lab.command("--suite", suite, *self.more, report=self.report)]

    def _suite(self) -> str:
        return "pr" if any(fault.moment == "measuring" for fault in self.faults) else "quick"

    def _await(self, pattern: str) -> bool:
        assert self.running is not None
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and self.running.process.poll() is None:
            if re.search(pattern, self.running.said()):
                return True
            time.sleep(0.01)
        if self.running_still:
            self.found.append(f"the run did not say {pattern!r} within {PATIENCE_S:g} s")
        return False

    def _status(self) -> int:
        if self.running is None:
            return 125  # as timeout(1) says it: the command was not started
        try:
            return self.running.process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.running.close()
            return 124  # as timeout(1) says it

    def _measure_again(self) -> tuple[str, float]:
        """Run the quick suite with nothing wrong; return what came of it and the seconds since the fault."""
        first = ""
        for _attempt in range(ATTEMPTS):
            began_s = time.monotonic()
            done = self.ground.lab.run("--suite", "quick")
            until_s = time.monotonic() - self.injected_s
            word = outcome(self.ground.lab.out)
            if done.returncode == 0 and word == "pass":
                self.ground.run_s = time.monotonic() - began_s
                return (f"yes, after {first}" if first else "yes"), until_s
            said = f"exit {done.returncode}: {_last_sentence(done.stdout)}"
            if word != "undecided" and not (done.returncode == 3 and re.search(_BUSY_HOST, done.stdout)):
                return said, until_s
            first = first or said
        return first, until_s

    def _wrong(self, row: Row, said: str) -> list[str]:
        allowed = set(self.owners) or self.plan.owners(self.made)
        alone = len(self.faults) == 1 and not self.plan.slower
        patterns = [fault.says for fault in self.faults if fault.says] if alone else []
        return [
            *([f"owner {row.owner}, not {' or '.join(sorted(allowed))}"] if row.owner not in allowed else []),
            *(f"does not say {pattern!r}" for pattern in patterns if not re.search(pattern, _told(said))),
            *(["a traceback"] if "Traceback" in said else []),
            *([f"{row.lost} records lost"] if row.lost else []),
            *(["something is left"] if row.left else []),
            *(["the next run"] if not row.next_run.startswith(("yes", NOT_TRIED)) else []),
        ]


class Acknowledged:
    """What the journals have told: a line that was once whole on disk must stay, whatever is killed.

    So long as the place is there: a run may have results on a disk of its own, which goes with the fault.
    """

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._seen = {path: set(lines) for path, lines in trial.ground.records().items()}
        self._deleted = Path()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        """Read the journal of the run that is under way, as long as it is."""
        while not self._over.wait(LOOK_S):
            for out in self._trial.outs:
                path = (out / "latest").resolve() / "records.jsonl"
                self._seen.setdefault(path, set()).update(whole_lines(path))

    def delete(self, run: Path) -> None:
        """Delete a run, which takes its journal: what nobody can keep is not lost by the run."""
        self._deleted = run / "records.jsonl"
        shutil.rmtree(run)

    def lost(self) -> int:
        """Return how many lines are not there any more."""
        self._seen.pop(self._deleted, None)
        there = [out for out in self._trial.outs if out.exists()]
        return sum(
            len(lines.difference(whole_lines(path)))
            for path, lines in dict(self._seen).items()
            if any(path.is_relative_to(out) for out in there)
        )


def outcome(out: Path) -> str:
    """Return what the newest run came to, in the word of its verdicts.json; "" where it has none."""
    try:
        return str(json.loads((out / "latest" / "verdicts.json").read_text())["outcome"])
    except (OSError, ValueError, KeyError):
        return ""


def _told(said: str) -> str:
    """Return what a run said besides how far it is, without the ends of lines that a screen makes."""
    lines = [line for line in said.splitlines() if not _PROGRESS.match(line)]
    return " ".join(line.strip() for line in lines)


def _entries(out: Path) -> list[dict[str, str]]:
    """Return the newest run's journal; nothing of one that is torn."""
    try:
        lines = (out / "latest" / "records.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]
    except (OSError, ValueError):
        return []


def _last_sentence(said: str) -> str:
    """Return what stands below the last rule, or the last line: one sentence of what a person sees."""
    below = said.rstrip().rpartition("──")[2].strip() or said.strip()
    if "──" not in said and "\nhil: " in said:
        below = said[said.rindex("\nhil: ") :]
    lines = [line.strip() for line in below.splitlines() if line.strip()]
    return " ".join(lines[:3])[:400]


def _recovered(owner: str, next_run: str) -> str:
    if owner == "nobody":
        return "in the run"
    if next_run == NOT_TRIED:
        return "–"
    return "next run" if next_run.startswith("yes") else "no"
