# SPDX-License-Identifier: Apache-2.0
"""Building and measuring commits for a bisection, as people would: ``hil build --at``, ``hil run --base``."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ruamel.yaml import YAML

from hil.base.errors import ConfigError, ExitCode, RigError
from hil.boards.firmware.revision import STEP_TIMEOUT_S
from hil.metrics.metric import metric_names
from hil.model import Case
from hil.run.bisect.task import Answer, Progress, Task, Trial, progress, read_trials, write_trials
from hil.store.files import typed_path
from hil.thresholds import project_files

SUITE = "bisect"
ATTEMPTS = 2  # runs of one commit before it is left out as undecided
STOP_TIMEOUT_S = 60.0
LEAST_CHANGE, LARGEST_CHANGE = 0.02, 0.9
_TOLD: Mapping[str, Answer] = {"pass": "old", "improved": "old", "regressed": "new"}

Say = Callable[[str], None]


class CannotBuildError(Exception):
    """A commit does not build here; the message says why."""


@dataclass(frozen=True)
class Outcome:
    """What the gate said of a candidate beside the base."""

    outcome: str
    sentence: str
    run: str


class Runner(Protocol):
    """What builds and measures."""

    def build(self, commit: str) -> Path:
        """Return the bundle of a commit. Raises CannotBuildError."""

    def compare(self, base: Path, candidate: Path) -> Outcome:
        """Return what the gate says of the candidate. Raises HilError where nothing was judged."""


@dataclass(frozen=True)
class Search:
    """A task, where it keeps its state, and what measures for it."""

    task: Task
    folder: Path
    runner: Runner
    say: Say

    def run(self) -> tuple[Progress, dict[str, Trial]]:
        """Measure until the first bad commit is known or nothing more can be told; goes on where it stopped.

        Raises HilError where a run was not judged; what was measured before is kept.
        """
        trials = read_trials(self.folder, self.task)
        state = progress(self.task.commits, trials)
        if state.done:
            return state, trials
        try:
            base = self.runner.build(self.task.base)
        except CannotBuildError as error:
            raise ConfigError(
                f"{self.task.base[:12]}, which all others are compared with, does not build: {error}",
                next_step="name another end of the range.",
            ) from error
        while not state.done:
            self.say(f"{len(state.suspects)} suspects; measuring {state.next[:12]}")
            trials[state.next] = trial = self._try(base, state.next)
            self.say(f"{trial.commit[:12]}: {trial.answer}. {trial.sentence}")
            write_trials(self.folder, self.task, trials)
            state = progress(self.task.commits, trials)
        return state, trials

    def _try(self, base: Path, commit: str) -> Trial:
        # where the step is for the better, its new end is the base, and the old level regresses beside it
        measured = self.task.good if self.task.better and commit == self.task.bad else commit
        try:
            bundle = self.runner.build(measured)
        except CannotBuildError as error:
            return Trial(commit, "unknown", f"it does not build: {error}")
        for _attempt in range(ATTEMPTS):
            outcome = self.runner.compare(base, bundle)
            answer = _TOLD.get(outcome.outcome, "unknown")
            if answer != "unknown" or outcome.outcome == "no-baseline":
                break
        if self.task.better and measured == commit and answer != "unknown":
            answer = "new" if answer == "old" else "old"
        return Trial(commit, answer, outcome.sentence, outcome.run)


@dataclass(frozen=True)
class ProcessRunner:
    """Starts ``hil`` for each build and each run."""

    task: Task
    case: Case
    target: str
    rack: Path
    thresholds: Path
    folder: Path
    budget_min: float
    wait_s: float
    hil: Sequence[str] = (sys.executable, "-m", "hil")

    def build(self, commit: str) -> Path:
        bundle = self.folder / "firmware" / commit[:12]
        # the newest commit's benches measure all of them, so that one which edits a bench has an answer too
        argv = ["build", "--target", self.target, "--at", commit, "--ruler-of", self.task.bad]
        argv += ["--bundle", str(bundle)]
        if "tick_hz" in self.case.parameters:
            argv += ["--tick-hz", str(self.case.parameters["tick_hz"])]
        log = self.folder / f"build-{commit[:12]}.log"
        status = _run([*self.hil, *argv], log, timeout_s=3 * STEP_TIMEOUT_S)
        if status == ExitCode.CONFIG:
            raise CannotBuildError(f"{_last_line(log)} ({log})")
        if status:
            raise RigError(f"`hil build --at {commit[:12]}` ended with status {status}.", log=str(log))
        return bundle

    def compare(self, base: Path, candidate: Path) -> Outcome:
        out = self.folder / "runs"
        before = _runs(out)
        argv = ["run", "--rack", str(self.rack), "--suite", SUITE, "--thresholds", str(self.thresholds)]
        argv += ["--base", str(base), "--firmware", str(candidate), "--out", str(out), "--no-report"]
        argv += ["--budget", f"{self.budget_min:g}", "--wait", f"{self.wait_s:g}"]
        argv += [f"--board={board}" for board in self.task.boards]
        log = self.folder / f"run-{candidate.name}.log"
        status = _run([*self.hil, *argv], log, timeout_s=self.wait_s + 180 * self.budget_min + 600)
        new = sorted(_runs(out) - before)
        if status not in (ExitCode.PASS, ExitCode.FIRMWARE, ExitCode.UNDECIDED) or not new:
            raise RigError(
                f"measuring {candidate.name} ended with status {status}: {_last_line(log)}",
                log=str(log),
                next_step="mend it and start the same bisection again; what was measured is kept.",
            )
        return read_outcome(new[-1], self.case.case_id, self.task.metric)


def write_thresholds(source: Path, to: Path, task: Task, case: Case) -> Path:
    """Copy the thresholds with one case, one metric and one rule: a step as large as the task's blocks.

    Between no step and the whole step the gate decides at half of it; the rest of the file's rules would take
    their share of alpha, so they go.
    """
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(source, to) if source.is_dir() else to.mkdir(parents=True)
    for file in project_files(source):
        shutil.copyfile(file, to / file.name)
    path = to / f"{case.bench}.yaml"
    yaml = YAML()
    content = yaml.load(path)
    for key in ("limits", "advice", "suppressions"):
        content.pop(key, None)
    change = min(max(abs(task.change), LEAST_CHANGE), LARGEST_CHANGE)
    content["suites"] = {SUITE: [dict(case.parameters)]}
    content["metrics"] = {task.metric: _entry_of(content["metrics"], task.metric)}
    content["compare"] = [
        {
            "where": {"metric": task.metric, "case": dict(case.parameters)},
            "tolerance_ratio": round(change, 4),
            "min_effect_ratio": round(change / 2, 4),
            "why": f"the step between {task.good[:12]} and {task.bad[:12]}",
        }
    ]
    with path.open("w", encoding="utf-8") as stream:
        yaml.dump(content, stream)
    return to


def _entry_of(entries: Mapping[str, Any], metric: str) -> dict[str, Any]:
    """Return the entry of one metric of a thresholds file, which may block by comparison alone."""
    for entry, fields in entries.items():
        if statistic := metric_names(entry, fields["statistic"]).get(metric):
            return {**fields, "statistic": statistic, "blocking": "compared"}
    raise KeyError(metric)  # check_metric has found it


def read_outcome(run: Path, case_id: str, metric: str) -> Outcome:
    """Read what a run's verdict says of the comparison. Raises RigError where it says nothing of it."""
    path = run / "verdicts.json"
    try:
        compared: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["compared"]
        found = [item for item in compared if (item["case_id"], item["metric"]) == (case_id, metric)]
        if found:
            return Outcome(str(found[0]["outcome"]), str(found[0]["sentence"]), str(run))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RigError(f"{path} cannot be read: {error!r}.") from error
    raise RigError(
        f"{path} compares no {metric} of {case_id}.",
        next_step=f"look why: hil gate {typed_path(run)}, {run}/summary.md",
    )


def _runs(out: Path) -> set[Path]:
    return {path.parent for path in out.glob("*/verdicts.json") if not path.parent.is_symlink()}


def _run(argv: Sequence[str], log: Path, *, timeout_s: float) -> int:
    """Run a program to its end; where this process is told to stop, tell it too and wait for it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as stream:
        process = subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT
        )
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise RigError(
                f"`{' '.join(argv[:5])} …` did not end in {timeout_s:g} s.", log=str(log)
            ) from error
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_TIMEOUT_S)
    process.kill()
    process.wait()


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].removeprefix("hil: ") if lines else "it said nothing"
