"""What is to be bisected, and how far it is: planned from git and the thresholds, kept in a file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError
from hil.base.git import git, try_git
from hil.base.yamlvalue import did_you_mean
from hil.boards.firmware.revision import FOLDER, find_revision
from hil.model import Case
from hil.run.bisect.bisection import Trial
from hil.thresholds import Thresholds

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


def case_of(benches: Mapping[str, Thresholds], case_id: str) -> Case:
    """Return the case of this id, whether a suite has it or not. Raises ConfigError."""
    bench, _slash, pairs = case_id.partition("/")
    if bench not in benches:
        raise ConfigError(
            f"there is no bench {bench!r}{did_you_mean(bench, benches)}",
            next_step="name the case as reports do: bench/key=value,…",
        )
    values = dict(pair.partition("=")[::2] for pair in pairs.split(",") if pair)
    return benches[bench].case({key: _scalar(value) for key, value in values.items()})


def _scalar(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?\d+", text) else text


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
