# SPDX-License-Identifier: Apache-2.0
"""``hil run``: hand over to pytest, which collects the benches and runs the boot loop."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import click

from hil.base.paths import PROJECT_ROOT
from hil.boards.rack import load_rack
from hil.cli.options import (
    F,
    boards_option,
    out_option,
    rack_option,
    suite_option,
    thresholds_option,
    warn_of_old_store,
)
from hil.run.plan import BOOTS_MAX
from hil.store import TRIGGERS


def compare_options(function: F) -> F:
    """Add what a comparison with another firmware needs; hil.run.campaign reads it."""
    options = (
        click.option(
            "--base",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Compare with this bundle, or this build: in turns on each board, until all is decided.",
        ),
        click.option(
            "--budget",
            type=float,
            metavar="MINUTES",
            help="With --base: begin no boots that would not be through by then.  [default: 15]",
        ),
        click.option(
            "--reference",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Compare with this bundle, or this build: --boots boots of each.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command("run")
@rack_option
@suite_option
@boards_option
@click.option("--target", default="", metavar="TARGET", help="Only boards of this target, such as esp32s3.")
@click.option("--profile", default="", metavar="NAME", help="Air profile, instead of the rack file's.")
@click.option(
    "--noise",
    default="",
    metavar="NAME",
    help="Simulate a noisy rack on the virtual one: quiet, typical, noisy, or none.",
)
@click.option(
    "--noise-seed", type=click.IntRange(0), metavar="N", help="Its seed, instead of the rack file's."
)
@click.option(
    "--firmware",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Measure this bundle, or this build; build nothing.",
)
@click.option("--wait", type=float, default=0.0, metavar="SECONDS", help="Wait for boards that others hold.")
@click.option(
    "--trigger",
    type=click.Choice(TRIGGERS),
    default="local",
    envvar="HIL_TRIGGER",
    show_default=True,
    show_envvar=True,
    help="What the run is for; histories of metrics are kept apart by it.",
)
@click.option(
    "--legs",
    type=click.IntRange(1, 100),
    default=1,
    metavar="N",
    envvar="HIL_LEGS",
    show_envvar=True,
    help="This run is one of N that judge one pull request: they share alpha.  [default: 1]",
)
@click.option(
    "--pushgateway",
    default="",
    metavar="URL",
    envvar="HIL_PUSHGATEWAY",
    show_envvar=True,
    help="Push metrics there, instead of where the rack file says.",
)
@click.option(
    "--boots",
    type=click.IntRange(1, BOOTS_MAX),
    metavar="N",
    help="Boot each board so often, and measure all of its cases in each boot.  [default: 1]",
)
@compare_options
@click.option("--keep-captures", is_flag=True, help="Keep the packets that peers capture, in OUT/RUN/peer.")
@click.option("--report/--no-report", default=True, help="Build the report in OUT/report.  [default: build]")
@thresholds_option
@out_option
@click.pass_obj
def command(
    debug: bool,
    /,
    boards: tuple[str, ...],
    firmware: Path | None,
    out: Path,
    *,
    rack: Path,
    target: str,
    report: bool,
    keep_captures: bool,
    **options: object,
) -> None:
    """Build, flash, measure and judge.

    The same as `python -m pytest hil/benches --rack … --suite …`, with progress and a summary.
    """
    argv = [sys.executable, "-m", "pytest", str(PROJECT_ROOT / "hil" / "benches")]
    argv += ["-c", str(PROJECT_ROOT / "pytest.ini"), "-p", "no:cacheprovider", "--hil-ui"]
    given = {name: value for name, value in options.items() if value is not None}
    argv += [f"--{name.replace('_', '-')}={value}" for name, value in {"rack": rack, **given}.items()]
    argv += [f"--board={board}" for board in boards]
    if target:
        load_rack(rack).select(boards, target)  # what nobody has is said at once
        argv += [f"--board-target={target}"]
    argv += [f"--out={out.absolute()}"]
    argv += [f"--firmware={firmware}"] if firmware else []
    argv += [] if report else ["--no-report"]
    argv += ["--keep-captures"] if keep_captures else []
    argv += ["--hil-debug"] if debug else []
    if report:
        warn_of_old_store(out / "history")
    _keep_stdout_open()
    # the same process goes on as pytest, so that signals and a kill reach what does the work
    os.execv(argv[0], argv)  # noqa: S606 - an argument list, no shell


def _keep_stdout_open() -> None:
    """Where the caller closed stdout, or reads it no longer, let the rest be dropped; it decides nothing."""
    if sys.stdout is None:  # else the next file that is opened would become descriptor 1
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.set_inheritable(1, True)  # dup2 leaves it as it is where it was opened as 1
        return
    with suppress(OSError):
        sys.stdout.flush()
