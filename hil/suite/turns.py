# SPDX-License-Identifier: Apache-2.0
"""Run a team's suite on two builds alternately: each pytest session is a boot of the gate's comparison.

The plugin's file of each session is on disk before anything is judged: ``OUT/pytest/RUN-ID/``.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from hil.base.errors import ConfigError, RigError
from hil.base.process import how_ended, tied
from hil.gate.judging import open_cases
from hil.model import Comparison, Entry, Looks, NotRun, Role
from hil.run.plan.looks import BootPace, order, plan_looks
from hil.store import RunDirectory
from hil.store.files import short_path
from hil.store.run_info import ComparedInfo, RunInfo, Trigger, new_run_id
from hil.suite.compared import (
    ROLES,
    Turn,
    comparisons_of,
    entries_of_turns,
    not_compared,
    thresholds_of_turns,
    with_one_name,
)
from hil.suite.facts import SuiteSession, read_sessions
from hil.suite.figures import figures_of
from hil.suite.taking import SUITE, describe_session, images_of, keep_limits
from hil.thresholds import load_all
from hil.thresholds.types import Thresholds

_RAN = (0, 1)  # pytest's exit codes of a session whose tests ran
_USAGE, _NO_TESTS = 4, 5
_LAST_LINES = 3


@dataclass(frozen=True)
class SuiteCommand:
    """How a team runs its suite: pytest, its paths and options, and the folder that it runs in."""

    pytest: str
    words: tuple[str, ...]
    folder: Path

    def run(self, build: Path, file: Path) -> SuiteSession:
        """Run the suite on a build, and return what it measured; ``file`` is the plugin's.

        Raises:
            ConfigError: pytest refuses the command line, there is no test, or none gave a value.
            RigError: pytest was killed.
        """
        argv = [
            self.pytest, *self.words, "--hil", f"--hil-file={file.absolute()}",
            f"--build-dir={build.absolute()}",
        ]  # fmt: skip
        log = file.with_suffix(".log")
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as out:
            done = subprocess.run(
                tied(argv),  # a cancelled job leaves no suite that holds the board
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode not in _RAN:
            raise _refused(done.returncode, argv, log)
        files = sorted(file.parent.glob(f"{file.stem}*{file.suffix}"))
        if not files:
            raise ConfigError(
                f"the suite gave no value: no test called metric or log_metric ({short_path(log)}).",
                next_step="take the fixture metric in a test: docs/start/your-suite.md.",
            )
        return read_sessions(files)[0]


def _refused(status: int, argv: Sequence[str], log: Path) -> ConfigError | RigError:
    lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    said = " ".join(" ".join(lines[-_LAST_LINES:]).split())
    if status == _USAGE and "--hil" in said:
        return ConfigError(
            f"{argv[0]} does not know --hil: its environment has no plugin.",
            next_step="pip install pytest-esp-hil there, or activate the suite's environment.",
        )
    if status == _NO_TESTS:
        return ConfigError(f"pytest found no test in {argv[1]}.", next_step="name the suite: --pytest PATH.")
    kind = RigError if status < 0 else ConfigError
    return kind(f"pytest {how_ended(status)}: {said}.", log=str(log), next_step="read the log.")


@dataclass
class SuiteTurns:
    """A comparison under way. ``builds`` are the folders of both builds, ``folder`` the project's limits."""

    command: SuiteCommand
    builds: Mapping[Role, Path]
    out: Path
    folder: Path
    trigger: Trigger
    say: Callable[[str], None]
    run_id: str = field(default_factory=lambda: new_run_id(SUITE))
    _turns: list[Turn] = field(default_factory=list)

    def measure(self, budget_s: float) -> RunDirectory:
        """Run the sessions of look after look until all is decided; return the run, which is to be judged.

        Raises ConfigError and RigError as SuiteCommand.run(), figures_of() and limits_of() do.
        """
        ends = time.monotonic() + budget_s
        for role in ROLES:
            self._run(role)
        directory = RunDirectory.create(self.out, self._info())
        limits = self._limits(directory, self.say)
        looks = self._looks(limits, budget_s)
        comparisons = comparisons_of(self.run_id, self.turns, looks)
        cut_off: list[Entry] = []
        for number, boots in enumerate(map(sum, looks), start=1):
            if number > 1 and (why := self._no_time(boots - len(self._turns), ends)):
                reason = f"the time budget ended after look {number - 1} of {len(looks)}: {why}"
                cut_off = self._cut_off(comparisons, limits, reason)
                break
            for role in order(looks, ROLES)[number - 1][len(self._turns) - boots :]:
                self._run(role)
            limits = self._limits(directory, lambda _: None)
            if not any(self._open(one, limits) for one in comparisons):
                break
        left_out = not_compared(self.run_id, self.turns, comparisons)
        for entry in (*comparisons, *entries_of_turns(self.run_id, self.turns), *left_out, *cut_off):
            directory.append(entry)
        return directory

    @property
    def turns(self) -> list[Turn]:
        return with_one_name(self._turns)

    def _run(self, role: Role) -> None:
        number = len(self._turns)
        began = time.monotonic()
        file = self.out / "pytest" / self.run_id / f"{number:02d}-{role}.jsonl"
        facts = self.command.run(self.builds[role], file)
        turn = Turn(role, facts, time.monotonic() - began)
        self._turns.append(turn)
        count = len(figures_of(facts))
        self.say(f"session {number + 1}, {role}: {count} value{'s' * (count != 1)} in {turn.took_s:.0f} s")
        if not count and number < len(ROLES):
            raise ConfigError(
                f"no test of the {role} passed, so there is no value to compare.",
                next_step=f"read what pytest said: {short_path(file.with_suffix('.log'))}",
            )

    def _info(self) -> RunInfo:
        candidate, base = (turn.facts for turn in self.turns)
        entries = entries_of_turns(self.run_id, self.turns[:1])
        info = describe_session(candidate, entries, self.run_id, self.trigger)
        return msgspec.structs.replace(info, compared=ComparedInfo("base", images_of(base.boards)))

    def _limits(self, directory: RunDirectory, say: Callable[[str], None]) -> dict[str, Thresholds]:
        """Write the thresholds of all sessions so far into the run's folder; return them."""
        texts, notes = thresholds_of_turns(self.turns, self.folder)
        for note in notes:
            say(f"Warning: {note}")
        return load_all(keep_limits(directory, texts))

    def _looks(self, limits: Mapping[str, Thresholds], budget_s: float) -> Looks:
        """Choose the looks by how long the first sessions took; no value has been judged yet."""
        session_s = sum(turn.took_s for turn in self._turns) / len(self._turns)
        most = max(own.policy.max_boots for own in limits.values())
        looks = plan_looks(BootPace((session_s,), 0.0, 0.0), max_boots=most, budget_s=budget_s)
        after = ", ".join(f"{candidate} + {base}" for candidate, base in looks)
        self.say(f"Judged after {after} sessions, until all is decided.")
        return looks

    def _no_time(self, sessions: int, ends: float) -> str:
        """Say why so many sessions do not fit into the time that is left, "" where they do."""
        left_s = ends - time.monotonic()
        needed_s = sessions * sum(turn.took_s for turn in self._turns) / len(self._turns)
        if needed_s <= left_s:
            return ""
        return f"{max(left_s, 0):.0f} s are left, and the next look takes about {needed_s:.0f} s"

    def _open(self, comparison: Comparison, limits: Mapping[str, Thresholds]) -> frozenset[str]:
        return open_cases(comparison, entries_of_turns(self.run_id, self.turns), limits)

    def _cut_off(
        self, comparisons: Sequence[Comparison], limits: Mapping[str, Thresholds], reason: str
    ) -> list[Entry]:
        return [
            NotRun(self.run_id, board, case, reason, "cut-off")
            for one in comparisons
            for case in sorted(self._open(one, limits))
            for board in one.boards
        ]
