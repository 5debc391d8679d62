# SPDX-License-Identifier: Apache-2.0
"""What is to be bisected, and how far it is: planned from git and the thresholds, kept in a file.

Which commit to measure next, and which is the first bad one, from what was measured so far.

Pure: a bisection that was interrupted goes on with the same choices.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hil.base.errors import ConfigError
from hil.base.git import git, try_git
from hil.base.yamlvalue import did_you_mean
from hil.boards.firmware.revision import FOLDER, find_revision
from hil.model import Case
from hil.thresholds import Thresholds

Answer = Literal["old", "new", "unknown"]


@dataclass(frozen=True)
class Trial:
    """What measuring one commit said: the ``old`` level, the ``new`` one, or nothing, and why.

    ``run`` is the folder of the run, "" where the commit did not build.
    """

    commit: str
    answer: Answer
    sentence: str
    run: str = ""


@dataclass(frozen=True)
class Progress:
    """``suspects`` are the commits of which one is the first bad one, oldest first; ``next`` is the one to
    measure, "" where nothing more can be told. ``contradiction`` is what was said of the end that ought to be
    bad, where it does not show the step, else "".
    """

    suspects: tuple[str, ...]
    next: str
    contradiction: str = ""

    @property
    def done(self) -> bool:
        return not self.next


def progress(commits: Sequence[str], trials: Mapping[str, Trial]) -> Progress:
    """Say where a bisection of ``commits`` stands: all after the good end, the bad end last.

    The bad end is measured first: a step that it does not show cannot be found. Then the middle of what is
    left; where it says nothing, the commit nearest to it that was not measured.
    """
    last = commits[-1]
    if last not in trials:
        return Progress(tuple(commits), last)
    if trials[last].answer != "new":
        return Progress(tuple(commits), "", trials[last].sentence)
    first_new = min(n for n, commit in enumerate(commits) if _answer(trials, commit) == "new")
    old = [n for n, commit in enumerate(commits[:first_new]) if _answer(trials, commit) == "old"]
    start = max(old) + 1 if old else 0
    suspects = tuple(commits[start : first_new + 1])
    untried = [n for n in range(start, first_new) if commits[n] not in trials]
    if not untried:
        return Progress(suspects, "")
    middle = start + (first_new - start - 1) / 2
    return Progress(suspects, commits[min(untried, key=lambda n: (abs(n - middle), n))])


def runs_at_most(commits: int) -> int:
    """Return how many runs a bisection takes where each says something, that of the bad end included."""
    return 1 + math.ceil(math.log2(commits)) if commits else 0


def _answer(trials: Mapping[str, Trial], commit: str) -> str:
    return trials[commit].answer if commit in trials else ""


SCHEMA = 1
STATE = "state.json"


@dataclass(frozen=True)
class Task:
    """A step to be found: ``change`` is its size (0.1 is ten per cent), ``better`` says that it is for the
    better.

    ``good`` is the last commit at the old level, ``commits`` those after it that touch the firmware, oldest
    first, ``bad`` the last of them.
    """

    good: str
    bad: str
    case_id: str
    metric: str
    boards: tuple[str, ...]
    change: float
    better: bool
    commits: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of its folder: the same question has the same one."""
        digest = hashlib.sha256(json.dumps(dataclasses.asdict(self)).encode()).hexdigest()
        return f"{self.good[:12]}-{self.bad[:12]}-{digest[:8]}"

    @property
    def base(self) -> str:
        """The commit that the others are compared with: the faster end, so that the slower one regresses."""
        return self.bad if self.better else self.good


def commits_between(repository: Path, good: str, bad: str) -> tuple[str, tuple[str, ...]]:
    """Return the commit of ``good``, and those after it up to ``bad`` that touch the firmware, oldest first.

    Of a merge, the merge itself counts, as it is what was measured.

    Raises:
        ConfigError: git knows one of them not, ``bad`` does not follow ``good``, or nothing in between
            touches the firmware.
    """
    start, end = find_revision(repository, good), find_revision(repository, bad)
    if try_git(repository, "merge-base", "--is-ancestor", start.commit, end.commit).returncode:
        raise ConfigError(
            f"{start} is no ancestor of {end}, so no commit between them is the first bad one.",
            next_step="name the older commit with --good; a shallow clone needs git fetch --unshallow.",
        )
    listed = git(
        repository,
        "rev-list",
        "--reverse",
        "--first-parent",
        f"{start.commit}..{end.commit}",
        "--",
        f"{FOLDER}/",
    )
    commits = tuple(listed.split())
    if not commits:
        raise ConfigError(
            f"no commit between {start} and {end} touches {FOLDER}/, so both are the same firmware.",
            next_step="look at the environment of these nights: hil changes.",
        )
    return start.commit, commits


def check_metric(thresholds: Thresholds, metric: str, case: Case) -> None:
    """Raise ConfigError where the case has no such metric."""
    known = [found.name for found in thresholds.metrics_of(case.parameters)]
    if metric not in known:
        raise ConfigError(
            f"{thresholds.source}: {case.case_id} has no metric {metric!r}{did_you_mean(metric, known)} "
            f"It has: {', '.join(known)}."
        )


def read_trials(folder: Path, task: Task) -> dict[str, Trial]:
    """Read what was measured before; nothing where the task was never begun.

    Raises ConfigError where the file is damaged, or of another task.
    """
    path = folder / STATE
    if not path.exists():
        return {}
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["schema"] != SCHEMA or stored["task"] != _task_json(task):
            raise ValueError("it is of another task or format")  # noqa: TRY301
        return {trial["commit"]: Trial(**trial) for trial in stored["trials"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path} cannot be read: {error}.", next_step=f"begin again: rm -r {folder}"
        ) from error


def write_trials(folder: Path, task: Task, trials: Mapping[str, Trial]) -> None:
    """Write the state, so that an interruption at any moment leaves the old one or the new one."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {
        "schema": SCHEMA,
        "task": _task_json(task),
        "trials": [dataclasses.asdict(trial) for trial in trials.values()],
    }
    beside = folder / f"{STATE}.new"
    beside.write_text(json.dumps(state, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    beside.replace(folder / STATE)


def _task_json(task: Task) -> dict[str, Any]:
    return dict(json.loads(json.dumps(dataclasses.asdict(task))))
