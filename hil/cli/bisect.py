# SPDX-License-Identifier: Apache-2.0
"""``hil bisect``: which commit made the step that the nights show."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from hil.base.errors import ConfigError, ExitCode
from hil.base.paths import PROJECT_ROOT
from hil.base.project import product_here
from hil.boards.rack import load_rack
from hil.cli.options import DEFAULT_OUT, boards_option, history_option, thresholds_option
from hil.gate.compare.looks import LOOKS
from hil.history import load
from hil.history.nightly.survey import Finding, survey
from hil.model import SeriesId, format_product
from hil.run.bisect.bisect_run import ProcessRunner, Search, write_thresholds
from hil.run.bisect.task import Progress, Task, Trial, check_metric, commits_between, runs_at_most
from hil.run.plan import deadline_s
from hil.run.plan.deadline import BOOT_S
from hil.run.plan.selection import case_of
from hil.thresholds import Thresholds, load_project

DEFAULT_CHANGE = 0.10


@click.command("bisect")
@click.option("--good", default="", metavar="REV", help="The last commit before the step.")
@click.option("--bad", default="", metavar="REV", help="A commit that shows the step.")
@click.option("--case", "case_id", default="", metavar="CASE", help="The case, as reports name it.")
@click.option("--metric", default="", metavar="NAME", help="The metric.")
@boards_option
@click.option(
    "--change",
    type=float,
    metavar="RATIO",
    help="How large the step is: 0.1 is ten per cent more.  [default: the change point's, or 0.1]",
)
@click.option("--better", is_flag=True, help="The step is for the better.")
@click.option(
    "--series",
    default="",
    metavar="SERIES",
    help="Take all of it from the newest change point of this series in the history.",
)
@history_option
@click.option(
    "--rack", type=click.Path(path_type=Path), metavar="FILE", help="Measure on it. [default: only plan]"
)
@click.option(
    "--budget", type=click.FloatRange(1), default=15.0, metavar="MINUTES", help="For each run. [15]"
)
@click.option("--wait", type=float, default=0.0, metavar="SECONDS", help="Wait for boards that others hold.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_OUT / "bisect",
    help="Where it keeps what it measures. [default: out/bisect]",
)
@thresholds_option
def command(
    *,
    series: str,
    history_folder: Path,
    rack: Path | None,
    thresholds: Path,
    out: Path,
    budget: float,
    wait: float,
    **asked: object,
) -> int:
    """Find the first bad commit of a step, with as few runs as it takes.

    Without --rack it says what it would do. With one, each run compares a commit with the good end on the
    same boards, until one commit is left. Interrupted, the same command goes on where it stopped.

    Exit code 0 where one commit was found, 4 where several are left or the bad end does not show the step.
    """
    benches = load_project(thresholds)
    question = _question(asked, _finding(series, history_folder, benches))
    case = case_of(benches, question.case_id)
    check_metric(benches[case.bench], question.metric, case)
    good, commits = commits_between(PROJECT_ROOT, question.good, question.bad)
    task = Task(
        good,
        commits[-1],
        case.case_id,
        question.metric,
        question.boards,
        question.change,
        question.better,
        commits,
    )
    once_min = _minutes_of_a_run(benches[case.bench], deadline_s(case))
    for line in plan_lines(task, min(once_min, budget)):
        click.echo(line)
    if rack is None:
        click.echo(f"To measure: the same command with --rack FILE; it keeps its state in {out / task.name}.")
        return int(ExitCode.PASS)
    folder = (out / task.name).absolute()
    runner = ProcessRunner(
        task,
        case,
        _target(rack, task.boards),
        rack,
        write_thresholds(thresholds, folder / "thresholds", task, case),
        folder,
        budget_min=budget,
        wait_s=wait,
    )
    state, trials = Search(task, folder, runner, click.echo).run()
    for line in conclusion(task, state, trials, folder):
        click.echo(line)
    found = len(state.suspects) == 1 and not state.contradiction
    return int(ExitCode.PASS if found else ExitCode.UNDECIDED)


def plan_lines(task: Task, once_min: float) -> list[str]:
    """Say what a bisection takes, at most."""
    runs = runs_at_most(len(task.commits))
    candidate, base = LOOKS[-1]
    boards = ", ".join(task.boards) or "every board of the rack"
    return [
        f"{task.metric} of {task.case_id} on {boards}: "
        f"{'better' if task.better else 'worse'} by {abs(task.change):.1%} "
        f"after {task.good[:12]}, at {task.bad[:12]} at the latest",
        f"{len(task.commits)} commits in between touch the firmware: {_short(task.commits)}",
        f"{runs} runs: the bad end first, then {runs - 1} to halve them; more where one does not build",
        f"a run: looks at up to {candidate} + {base} boots a board, at most {once_min:.0f} min; "
        f"in all at most {runs * once_min:.0f} min and {runs * (candidate + base)} boots a board",
    ]


def conclusion(task: Task, state: Progress, trials: Mapping[str, Trial], folder: Path) -> list[str]:
    """Say what was found, and by which runs."""
    lines = []
    if state.contradiction:
        lines.append(f"Not found: {task.bad[:12]} does not show the step: {state.contradiction}")
        lines.append(f"Next: a wider range, a longer --budget, or begin again: rm -r {folder}")
    elif len(state.suspects) == 1:
        lines.append(f"The first bad commit is {state.suspects[0]}; git show {state.suspects[0][:12]}")
    else:
        lines.append(f"The first bad commit is one of {len(state.suspects)}: {_short(state.suspects)}")
    for trial in trials.values():
        where = f" ({trial.run})" if trial.run else ""
        lines.append(f"  {trial.commit[:12]} {trial.answer:7} {trial.sentence}{where}")
    return lines


@dataclass(frozen=True)
class _Question:
    good: str
    bad: str
    case_id: str
    metric: str
    boards: tuple[str, ...]
    change: float
    better: bool


def _question(asked: Mapping[str, object], finding: Finding | None) -> _Question:
    """Put together what was asked for by options and by a change point; options count more."""
    point, name = (finding.point, finding.name) if finding else (None, None)
    texts = {
        "good": asked["good"] or (point.good if point else ""),
        "bad": asked["bad"] or (point.bad if point else ""),
        "case_id": asked["case_id"] or (name.case_id if name else ""),
        "metric": asked["metric"] or (name.metric if name else ""),
    }
    missing = [f"--{key.removesuffix('_id')}" for key, text in texts.items() if not text]
    if missing:
        raise ConfigError(
            f"{' and '.join(missing)} must be given.",
            next_step="`hil changes` prints the whole command below each change point; or give --series.",
        )
    change = asked["change"] if asked["change"] is not None else (point.change if point else DEFAULT_CHANGE)
    if not math.isfinite(float(str(change))) or not change:
        raise ConfigError(
            f"--change {change:g}: a step is a share other than 0, such as 0.1 for ten per cent.",
            next_step="leave it out to look for the change point's, or for ten per cent.",
        )
    boards = asked["boards"] or ((name.board,) if name else ())
    return _Question(
        **{key: str(text) for key, text in texts.items()},
        boards=tuple(boards) if isinstance(boards, tuple) else (),
        change=float(str(change)),
        better=bool(asked["better"]) or bool(finding and finding.effect == "better"),
    )


def _finding(series: str, history: Path, benches: Mapping[str, Thresholds]) -> Finding | None:
    """Return the newest change of the firmware in a series. Raises ConfigError where it has none."""
    if not series:
        return None
    own = SeriesId.parse(series).product if series.count("/") >= 3 else product_here()
    if own != product_here():
        raise ConfigError(
            f"{series!r} is of {format_product(own)}, and this project is {format_product(product_here())}: "
            "its commits are not here.",
            next_step="go to that product's project, and bisect there.",
        )
    found = [
        finding
        for finding in survey(load(history), benches).findings
        if finding.point.series_id == series and finding.point.cause == "firmware"
    ]
    if not found:
        raise ConfigError(
            f"the history in {history} has no change point of the firmware in {series!r}.",
            next_step=f"list those that it has: hil changes --history {shlex.quote(str(history))}",
        )
    return found[-1]


def _target(rack: Path, boards: Sequence[str]) -> str:
    targets = sorted({board.target for board in load_rack(rack).select(boards)})
    if len(targets) != 1:
        raise ConfigError(
            f"{rack}: the boards have the targets {', '.join(targets)}; a bisection builds for one.",
            next_step="name boards of one target: --board ID.",
        )
    return targets[0]


def _minutes_of_a_run(thresholds: Thresholds, case_s: float) -> float:
    """Return how long a run takes at most, in minutes, on boards that measure side by side."""
    boots = min(thresholds.policy.max_boots, sum(LOOKS[-1]))
    return boots * (BOOT_S + case_s) / 60


def _short(commits: Sequence[str]) -> str:
    shown = [commit[:12] for commit in commits]
    return ", ".join(shown if len(shown) <= 6 else [*shown[:3], "…", *shown[-2:]])
