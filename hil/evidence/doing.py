# SPDX-License-Identifier: Apache-2.0
"""The programme done: each command a process as by hand, its output kept, each result on disk at once.

Below ``OUT/evidence/<rack>`` lie ``evidence.json``, what the commands said (``steps/``), the builds and, in
an OUT of their own, the runs: faults that were asked for shall not count in the rack's history and health.
"""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from hil.base.errors import ConfigError, ExitCode, HilError
from hil.base.flock import try_lock
from hil.base.untrusted import terminal_page
from hil.boards.rack import Board, Rack
from hil.evidence.judging import boots_of, found_in, publish_p50_us
from hil.evidence.programme import (
    BOOTS,
    FAULT_SUITE,
    NEXT_SUITE,
    PLANTED_RATIO,
    PLANTED_SUITE,
    Ask,
    Step,
    has_switch,
    steps,
)
from hil.evidence.report import EVIDENCE, Command, Evidence, EvidenceBoard, Result, StepReport, write_evidence
from hil.history.baseline.collect import end_session
from hil.store import RunDirectory, StoredRun, read_run
from hil.store.directory import JOURNAL
from hil.store.run_info import tool_state, utc_now

FOLDER = "evidence"
STEPS = "steps"
RUNS = "out"
_FIRMWARE, _PLANTED = "firmware", "planted"
_MOST_RUNS = 6  # of one step: a rack that never boots often enough is not asked for ever
_LAST_WORDS_S = 10.0  # after its end; what it started may hold the pipe open for longer
_POLL_S = 0.2
_SKIP = ("skip", "s")


class Skipped(Exception):  # noqa: N818 - it is no error
    """A step is left out; says why."""


@dataclass(frozen=True)
class Asked:
    """What the programme is given. ``person`` answers a prompt by a word; None where nobody is there."""

    rack: Rack
    out: Path
    firmware: Path | None = None
    planted: Path | None = None
    thresholds: Path | None = None
    wait_s: float = 0.0
    person: Callable[[str], str] | None = None
    nobody: str = ""
    say: Callable[[str], object] = print


def folder_of(out: Path, rack: Rack) -> Path:
    return out.absolute() / FOLDER / rack.name


def begin(rack: Rack, host: dict[str, str]) -> Evidence:
    """Return the evidence of a rack of which nothing was done yet."""
    return Evidence(
        rack=rack.name,
        kind="virtual" if rack.is_virtual else "physical",
        access_point=rack.access_point.type,
        boards=tuple(
            EvidenceBoard(board.id, board.kind, board.target, _ports(board)) for board in rack.boards
        ),
        started_utc=utc_now(),
        steps=tuple(
            StepReport(one.name, one.title, one.expected, closes=one.closes(rack)) for one in steps()
        ),
        host=host,
        tool={key: str(value) for key, value in tool_state().items()},
    )


def _ports(board: Board) -> str:
    return next((name for name in ("by-id", "by-path") if f"/{name}/" in board.serial), "another way")


@dataclass
class Programme:
    """The steps of one rack, done one after another; ``evidence`` is what is known so far."""

    asked: Asked
    evidence: Evidence
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def folder(self) -> Path:
        return folder_of(self.asked.out, self.asked.rack)

    @property
    def runs(self) -> Path:
        return self.folder / RUNS

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the folder, in which one programme works at a time. Raises ConfigError where another does."""
        for folder in (self.folder / STEPS, self.runs):
            folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            if not try_lock(lock.fileno()):
                raise ConfigError(
                    f"another hil evidence is at work in {self.folder}.",
                    next_step=f"wait for it, or see who it is: fuser -v {self.folder / 'lock'}",
                )
            yield

    def go_on(self, again: Sequence[str] = ()) -> Evidence:
        """Do what is not done yet, and the steps named in ``again``; one that fails costs no other."""
        for step in steps():
            if self.evidence.step(step.name).result in ("ok", "differs") and step.name not in again:
                continue
            if step.name in again:
                self._keep(self._blank(step))
            self.asked.say(f"\n== {step.name}: {step.title}")
            self._do(step)
            done = self.evidence.step(step.name)
            self.asked.say(f"-- {step.name}: {done.result}: {done.got or done.why}")
        return self.evidence

    def _do(self, step: Step) -> None:
        if step.name != "unchanged":  # whose runs are counted together, those of before too
            self._keep(self._blank(step))
        result: Result
        try:
            result, got = self._found(step)
            why = ""
        except Skipped as skipped:
            result, got, why = "skipped", "", str(skipped)
        except HilError as error:
            result, got, why = "differs", str(error), ""
        report = self.evidence.step(step.name)
        done = dataclasses.replace(report, result=result, got=got, why=why, ended_utc=utc_now())
        self._keep(done)

    def _found(self, step: Step) -> tuple[Result, str]:
        if step.ask:
            self._fault(step, step.ask)
        else:
            status = _ACTIONS[step.name](self, step)
            found = found_in(step.name, self._stored(step))
            if found is None:
                return ("ok" if status == 0 else "differs"), f"exit {status}"
        found = found_in(step.name, self._stored(step))
        if found is None:
            ended = [command.status for command in self.evidence.step(step.name).commands]
            return "differs", f"no run began: exit {ended[-1]} ({STEPS}/{step.name}.txt)"
        return ("ok" if found[0] else "differs"), found[1]

    def _blank(self, step: Step) -> StepReport:
        return StepReport(step.name, step.title, step.expected, closes=step.closes(self.asked.rack))

    def _keep(self, step: StepReport) -> None:
        self.evidence = self.evidence.replaced(step)
        write_evidence(self.folder / EVIDENCE, self.evidence)

    def _stored(self, step: Step) -> list[StoredRun]:
        return [read_run(self.runs / run) for run in self.evidence.step(step.name).runs]

    # -- what the steps do; each returns the status of its last command

    def doctor(self, step: Step) -> int:
        return self._hil(step, "doctor", "--rack", str(self.asked.rack.path))

    def check(self, step: Step) -> int:
        power = ["--power"] if has_switch(self.asked.rack) and not self.asked.rack.is_virtual else []
        return self._hil(step, "rack", "check", *power, *self._rack_and_out())

    def build(self, step: Step) -> int:
        if self.asked.firmware:
            raise Skipped(f"--firmware {self.asked.firmware} is measured")
        return self._build(step, _FIRMWARE, dict.fromkeys(self._targets(), 0))

    def _build(self, step: Step, bundle: str, plant_us: dict[str, int]) -> int:
        for target, us in plant_us.items():
            plant = [f"--plant-publish-us={us}"] if us else []
            into = str(self.folder / bundle)
            if status := self._hil(step, "build", "--target", target, *plant, "--bundle", into):
                return status
        return 0

    def _targets(self) -> list[str]:
        return list(dict.fromkeys(board.firmware_target for board in self.asked.rack.boards))

    def quick(self, step: Step) -> int:
        return self._run(step, "--suite", "quick")

    def unchanged(self, step: Step) -> int:
        status = 0
        while self._boots(step) < BOOTS:
            if len(self.evidence.step(step.name).runs) >= _MOST_RUNS:
                break
            before = self._boots(step)
            status = self._run(step, "--suite", "pr", "--unchanged")
            if self._boots(step) == before:  # it measures nothing, and would not the next time
                break
        return status

    def _boots(self, step: Step) -> int:
        boots = boots_of(self._stored(step))
        return min((boots[board.id] for board in self.asked.rack.boards), default=0)

    def planted(self, step: Step) -> int:
        planted = self.asked.planted
        if planted is None:
            planted = self.folder / _PLANTED
            if status := self._build(step, _PLANTED, self._plant_us()):
                raise Skipped(
                    f"no image with a slowdown in it: hil build ended with {status} (steps/{step.name}.txt)"
                )
        return self._run(step, "--suite", PLANTED_SUITE, "--base", str(self._firmware()), firmware=planted)

    def _plant_us(self) -> dict[str, int]:
        """Return what to plant, by target of the firmware: a share of the boards' own figures."""
        records = [
            record
            for name in ("quick", "unchanged")
            for run in self.evidence.step(name).runs
            for record in read_run(self.runs / run).records
        ]
        p50_us = publish_p50_us(records)
        found = {
            board.firmware_target: round(PLANTED_RATIO * p50_us[board.target])
            for board in self.asked.rack.boards
            if board.target in p50_us
        }
        if missing := [target for target in self._targets() if target not in found]:
            raise Skipped(f"no publish latency of {', '.join(missing)} was measured to take a tenth of")
        return found

    def _fault(self, step: Step, ask: Ask) -> None:
        """Let a person make a fault while a run measures, then measure untouched."""
        if self.asked.person is None:
            raise Skipped(self.asked.nobody)
        boards = ask.boards(self.asked.rack)
        if isinstance(boards, str):
            raise Skipped(boards)
        names = [board.id for board in boards]
        do = ask.do.format(boards=" and ".join(names))
        begin = f"{step.title}. " + (f"Please {do}" if ask.before else f"You will be asked to {do}")
        if self.asked.person(f"{begin}. Enter to go on, or skip: ").strip().lower() in _SKIP:
            raise Skipped("a person skipped it")
        options = [f"--board={name}" for name in names]
        told: list[str] = [do] if ask.before else []

        def now() -> None:
            told.append(do)
            self.asked.say(f"\a>>> NOW: {do} <<<")

        suite = NEXT_SUITE if ask.before else FAULT_SUITE
        self._run(step, "--suite", suite, *options, measuring=None if ask.before else now)
        if told:  # else the run ended before it measured anything, and nobody touched anything
            self.asked.person(f"Please {ask.undo}, then press Enter: ")
            self._run(step, "--suite", NEXT_SUITE, *options)

    # -- processes

    def _firmware(self) -> Path:
        return self.asked.firmware or self.folder / _FIRMWARE

    def _rack_and_out(self) -> list[str]:
        return ["--rack", str(self.asked.rack.path), "--out", str(self.runs)]

    def _run(
        self,
        step: Step,
        *options: str,
        firmware: Path | None = None,
        measuring: Callable[[], object] | None = None,
    ) -> int:
        """Do one `hil run`; ``measuring`` is called once it has measured something."""
        limits = ["--thresholds", str(self.asked.thresholds)] if self.asked.thresholds else []
        wait = [f"--wait={self.asked.wait_s:g}"] if self.asked.wait_s else []
        given = ["--firmware", str(firmware or self._firmware()), *limits, *wait, "--no-report"]
        return self._hil(step, "run", *options, *given, *self._rack_and_out(), measuring=measuring)

    def _hil(self, step: Step, *words: str, measuring: Callable[[], object] | None = None) -> int:
        """Do one command as by hand; what it says is shown and kept. Returns its status."""
        before = {run.run_id for run in RunDirectory.list(self.runs)}
        began = time.monotonic()
        self.asked.say(f"$ hil {' '.join(words)}")
        with (self.folder / STEPS / f"{step.name}.txt").open("ab") as log:
            log.write(f"$ hil {' '.join(words)}\n".encode())
            process = subprocess.Popen(
                [sys.executable, "-m", "hil", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                process_group=0,  # Ctrl-C reaches it once, from here
            )
            status = self._follow(process, log, before, measuring)
            log.write(f"exit {status}\n".encode())
        fresh = [run.run_id for run in RunDirectory.list(self.runs) if run.run_id not in before]
        report = self.evidence.step(step.name)
        command = Command(("hil", *words), status, round(time.monotonic() - began, 1))
        self._keep(
            dataclasses.replace(report, runs=(*report.runs, *fresh), commands=(*report.commands, command))
        )
        if status in (ExitCode.INTERRUPTED, ExitCode.TERMINATED):
            raise KeyboardInterrupt
        return status

    def _follow(
        self,
        process: subprocess.Popen[bytes],
        log: IO[bytes],
        before: set[str],
        measuring: Callable[[], object] | None,
    ) -> int:
        assert process.stdout is not None
        reader = threading.Thread(target=self._copy, args=(process.stdout, log), daemon=True)
        reader.start()
        try:
            while measuring and process.poll() is None:
                if self._measures(before):
                    measuring()
                    measuring = None
                time.sleep(_POLL_S)
            status = process.wait()
        except BaseException:
            end_session(process)
            raise
        finally:
            reader.join(_LAST_WORDS_S)
            if not reader.is_alive():
                process.stdout.close()
        return status

    def _copy(self, stream: IO[bytes], log: IO[bytes]) -> None:
        for line in stream:
            log.write(line)
            self.asked.say(terminal_page(line.decode(errors="replace").rstrip("\r\n")))

    def _measures(self, before: set[str]) -> bool:
        for path in self.runs.glob(f"*/{JOURNAL}"):
            if path.parent.name not in before and not path.parent.is_symlink():
                with contextlib.suppress(OSError):
                    if b'"type":"record"' in path.read_bytes():
                        return True
        return False


_ACTIONS: dict[str, Callable[[Programme, Step], int]] = {
    "doctor": Programme.doctor,
    "check": Programme.check,
    "build": Programme.build,
    "quick": Programme.quick,
    "unchanged": Programme.unchanged,
    "planted": Programme.planted,
}
