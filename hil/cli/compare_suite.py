# SPDX-License-Identifier: Apache-2.0
"""``hil compare --pytest``: a suite of a team's own, on two builds in turns."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_FILE, PROJECT_ROOT
from hil.base.project import Project, read_project
from hil.boards.firmware.build_folder import app_image
from hil.cli.conclusion import show
from hil.gate.stored import judge_stored
from hil.model import Role
from hil.run.base_build import describe_tree, find_base
from hil.run.campaign import DEFAULT_BUDGET_MIN
from hil.run.options import RunOptions
from hil.store import RunDirectory, read_measured
from hil.suite.turns import SuiteCommand, SuiteTurns

_READ = {
    "ref", "suite_path", "firmware", "base_build", "target", "budget", "thresholds", "out", "no_report",
    "undecided_status",
}  # fmt: skip


@dataclass(frozen=True)
class Suite:
    """What was asked: the suite's path, pytest's arguments, and builds that are there already."""

    path: Path
    arguments: Sequence[str]
    firmware: Path | None = None
    base: Path | None = None


def refuse_others(context: click.Context) -> None:
    """Refuse options that choose boards and cases of a rack: a suite has its own. Raises UsageError."""
    typed = click.core.ParameterSource.COMMANDLINE
    others = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in _READ and context.get_parameter_source(parameter.name or "") is typed
    ]
    if others:
        raise click.UsageError(f"{', '.join(others)}: only for a rack, not with --pytest.")


def compare_suite(options: RunOptions, suite: Suite, ref: str | None) -> int:
    """Build both, run the suite in turns, judge and report; return the exit status."""
    builds = _builds(options, suite, ref)
    if app_image(builds["candidate"]).read_bytes() == app_image(builds["base"]).read_bytes():
        raise ConfigError(
            f"{builds['candidate']} and {builds['base']} hold the same image: there is nothing to compare.",
            next_step="change the firmware, or name another commit or build.",
        )
    command = SuiteCommand(_pytest(), (str(suite.path), *suite.arguments), Path.cwd())
    turns = SuiteTurns(command, builds, options.out, options.thresholds, options.trigger, click.echo)
    return _conclude(turns.measure(60 * (options.budget or DEFAULT_BUDGET_MIN)), options)


def _pytest() -> str:
    """Return the suite's pytest: of the environment that is active, else of hil's own."""
    found = shutil.which("pytest") or shutil.which("pytest", path=str(Path(sys.executable).parent))
    if not found:
        raise ConfigError("pytest is not on PATH.", next_step="activate the suite's environment.")
    return found


def _builds(options: RunOptions, suite: Suite, ref: str | None) -> dict[Role, Path]:
    if suite.firmware and suite.base:
        return {"candidate": suite.firmware, "base": suite.base}
    from hil.boards.firmware.product.at import build_product_at
    from hil.boards.firmware.product.build import build_product

    project = read_project(PROJECT_ROOT) if (PROJECT_ROOT / PROJECT_FILE).is_file() else None
    folder, root = (project.firmware, project.root) if project else (PROJECT_ROOT, None)
    target = _target(options, project)
    base = None if suite.base else find_base(PROJECT_ROOT, ref)
    candidate = suite.firmware or build_product(folder, target=target, say=click.echo)
    if base is None:
        return {"candidate": candidate, "base": suite.base or candidate}
    click.echo(f"Comparing {describe_tree(PROJECT_ROOT)} with {base}")
    built = build_product_at(folder, base.revision, root=root, target=target, say=click.echo)
    return {"candidate": candidate, "base": built}


def _target(options: RunOptions, project: Project | None) -> str:
    chips = [options.target] if options.target else list(project.targets) if project else []
    if len(chips) != 1:
        raise ConfigError(
            f"the suite runs on one chip, but {', '.join(chips) or 'no chip'} is known.",
            next_step="name it: --target esp32s3; or name both builds: --firmware DIR --base DIR.",
        )
    return chips[0]


def _conclude(directory: RunDirectory, options: RunOptions) -> int:
    """Judge, report and show a run as `hil run` does; return its exit status."""
    from hil.reports.finish import ReportOptions, finish

    run = judge_stored(read_measured(directory.path))
    done = finish(run, ReportOptions(options.out, site=not options.no_report), say=click.echo)
    return show(run, done.noted(), undecided=options.undecided_status)
