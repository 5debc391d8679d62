# SPDX-License-Identifier: Apache-2.0
"""``hil reproduce``: run a published study's suite, then set its tables beside what was measured."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from hil.base.errors import ConfigError
from hil.boards.rack import load_rack
from hil.cli.options import boards_option, out_option, rack_option, thresholds_option
from hil.cli.run import command as run_command
from hil.reports.studies.declaration import KEPT_FOLDER, PUBLISHED, SIZES, load_study
from hil.run.plan import BOOTS_MAX
from hil.thresholds import load_project


@click.command("reproduce")
@click.argument("study")
@rack_option
@click.option(
    "--size",
    type=click.Choice(SIZES),
    default="quick",
    show_default=True,
    help="quick: minutes, on the rack's first board; full: all that the study asks, on every board.",
)
@boards_option
@click.option(
    "--boots",
    type=click.IntRange(1, BOOTS_MAX),
    metavar="N",
    help="Boot each board so often. [default: what the study's file says]",
)
@click.option(
    "--run",
    "run_folder",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Measure nothing: set this run (a folder below out) beside the study, as its folder keeps it.",
)
@click.option("--profile", default="", metavar="NAME", help="Air profile, instead of the rack file's.")
@click.option(
    "--firmware",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Measure this bundle, or this build; build nothing.",
)
@click.option("--wait", type=float, default=0.0, metavar="SECONDS", help="Wait for boards that others hold.")
@click.option("--report/--no-report", default=True, help="Build the report in OUT/report.  [default: build]")
@thresholds_option
@out_option
@click.pass_context
def command(
    context: click.Context,
    /,
    study: str,
    boards: tuple[str, ...],
    boots: int | None,
    run_folder: Path | None,
    *,
    rack: Path,
    size: str,
    thresholds: Path,
    report: bool,
    **options: object,
) -> None:
    """Repeat STUDY: published values beside ours.

    \b
    esp32-tcpip, freertos-multicore, mqtt-http-rtt, mqtt-qos, rtos-mqtt;
    docs/explain/studies.md explains them.

    The exit code is that of `hil run`: limits are judged as always, published values judge nothing.
    """
    studies = PUBLISHED
    if run_folder is not None:
        _refuse_measuring(context)
        kept = run_folder / KEPT_FOLDER
        if not _was_given(context, "thresholds") and any(kept.glob("*.yaml")):
            studies, thresholds = kept, kept.parent
        load_study(study, studies, benches=load_project(thresholds))
        from hil.reports.rebuild import show_study

        show_study(run_folder, study, studies, report=report)
        return
    wanted = load_study(study, benches=load_project(thresholds))
    first = load_rack(rack).boards[:1] if size == "quick" and not boards else ()
    context.invoke(
        run_command,
        rack=rack,
        suite=wanted.suites[size],
        boards=boards or tuple(board.id for board in first),
        boots=boots or wanted.boots[size],
        keep_captures=True,
        thresholds=thresholds,
        report=report,
        **options,
    )


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
        say = "says" if len(given) == 1 else "say"
        raise ConfigError(
            f"--run shows what was measured before, so {' and '.join(given)} {say} nothing.",
            next_step=f"leave {'it' if len(given) == 1 else 'them'} out, or leave --run out to measure.",
        )


# what matters besides measuring; the report is built beside the run's folder, not in OUT
_SHOWING = ("study", "run_folder", "report", "thresholds")
