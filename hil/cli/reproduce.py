# SPDX-License-Identifier: Apache-2.0
"""``hil reproduce``: run a published study's suite, then set its tables beside what was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from hil.base.errors import ConfigError
from hil.boards.rack import load_rack
from hil.cli.options import run_options
from hil.cli.run import measure
from hil.reports.studies.loader import KEPT_FOLDER, PUBLISHED, SIZES, load_study
from hil.run.options import RunOptions
from hil.thresholds import load_project


@click.command("reproduce")
@click.argument("study")
@click.option(
    "--size",
    type=click.Choice(SIZES),
    default="quick",
    show_default=True,
    help="quick: minutes, on the rack's first board; full: all that the study asks, on every board.",
)
@click.option(
    "--run",
    "run_folder",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Measure nothing: set this run (a folder below out) beside the study, as its folder keeps it.",
)
@run_options("reproduce")
@click.pass_context
def command(
    context: click.Context, /, *, study: str, size: str, run_folder: Path | None, **given: Any
) -> None:
    """Repeat STUDY and compare its published values with ours.

    \b
    esp32-tcpip, freertos-multicore, mqtt-http-rtt, mqtt-qos, rtos-mqtt;
    docs/explain/studies.md explains them.

    The exit code is that of `hil run`: limits are judged as always, published values are not judged.
    """
    options = RunOptions(**given, keep_captures=True, debug=bool(context.obj))
    if run_folder is not None:
        _refuse_measuring(context)
        _show(run_folder, study, options, named=_was_given(context, "thresholds"))
        return
    wanted = load_study(study, benches=load_project(options.thresholds))
    first = load_rack(options.rack).boards[:1] if size == "quick" and not options.boards else ()
    measure(
        replace(
            options,
            suite=wanted.suites[size],
            boards=options.boards or tuple(board.id for board in first),
            boots=wanted.boots[size],
        )
    )


def _show(run: Path, study: str, options: RunOptions, *, named: bool) -> None:
    """Set a stored run beside the study as its folder keeps it, unless thresholds are ``named``."""
    from hil.reports.rebuild import show_study

    kept = run / KEPT_FOLDER
    as_kept = not named and any(kept.glob("*.yaml"))
    studies, thresholds = (kept, kept.parent) if as_kept else (PUBLISHED, options.thresholds)
    load_study(study, studies, benches=load_project(thresholds))
    show_study(run, study, studies, report=not options.no_report)


def _was_given(context: click.Context, option: str) -> bool:
    return context.get_parameter_source(option) is ParameterSource.COMMANDLINE


def _refuse_measuring(context: click.Context) -> None:
    """Raise ConfigError where an option was given that only measuring knows."""
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name not in _SHOWING and _was_given(context, str(option.name))
    ]
    if given:
        has, them = ("has", "it") if len(given) == 1 else ("have", "them")
        raise ConfigError(
            f"--run shows a stored run, so {' and '.join(given)} {has} no effect.",
            next_step=f"leave {them} out, or leave --run out to measure.",
        )


# what matters besides measuring; the report is built beside the run's folder, not in OUT
_SHOWING = ("study", "run_folder", "no_report", "thresholds")
