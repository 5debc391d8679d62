# SPDX-License-Identifier: Apache-2.0
"""``hil run``: hand over to pytest, which collects the benches and runs the boot loop."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from hil.base.paths import IMPORT_ROOT, TOOL_BENCHES, bench_folders, python_path
from hil.boards.places.lease import lease_places
from hil.boards.places.settings import rack_with_places, read_places
from hil.boards.rack import load_rack
from hil.cli.options import (
    F,
    boards_option,
    out_option,
    rack_option,
    suite_option,
    thresholds_option,
    undecided_option,
    verbose_option,
)
from hil.run.plan import BOOTS_MAX
from hil.store import TRIGGERS, ended


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
            "--no-base-because",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="There is no base, for the reason that `hil build --at REV --failure FILE` wrote. Where its "
            "sources do not build, limits alone are judged; else the run is undecided.",
        ),
        click.option(
            "--unchanged",
            is_flag=True,
            help="Compare with itself as with --base: how the gate judges no change. It blocks nothing.",
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
        click.option(
            "--across-idf",
            is_flag=True,
            help="The other may be of another ESP-IDF release: then the releases are compared.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def measure_options(function: F) -> F:
    """Add what says which boards measure, how, and what for."""
    options = (
        click.option(
            "--target", default="", metavar="TARGET", help="Only boards of this target, such as esp32s3."
        ),
        click.option(
            "--label", "labels", multiple=True, metavar="WORD", help="Only boards that have this label."
        ),
        click.option(
            "--spread",
            is_flag=True,
            help="Measure each case once a target, on one of its boards; what a board that fails leaves, "
            "another one takes over.",
        ),
        click.option(
            "--profile", default="", metavar="NAME", help="Air profile, instead of the rack file's."
        ),
        click.option(
            "--noise",
            default="",
            metavar="NAME",
            help="Simulate a noisy rack on the virtual one: quiet, typical, noisy, or none.",
        ),
        click.option(
            "--noise-seed", type=click.IntRange(0), metavar="N", help="Its seed, instead of the rack file's."
        ),
        click.option(
            "--firmware",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Measure this bundle, or this build; build nothing.",
        ),
        click.option(
            "--wait", type=float, default=0.0, metavar="SECONDS", help="Wait for boards that others hold."
        ),
        click.option(
            "--trigger",
            type=click.Choice(TRIGGERS),
            default="local",
            envvar="HIL_TRIGGER",
            show_default=True,
            show_envvar=True,
            help="What the run is for; histories of metrics are kept apart by it.",
        ),
        click.option(
            "--legs",
            type=click.IntRange(1, 100),
            default=1,
            metavar="N",
            envvar="HIL_LEGS",
            show_envvar=True,
            help="This run is one of N that judge one pull request: they share alpha.  [default: 1]",
        ),
        undecided_option,
        click.option(
            "--pushgateway",
            default="",
            metavar="URL",
            envvar="HIL_PUSHGATEWAY",
            show_envvar=True,
            help="Push metrics there, instead of where the rack file says.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def keep_options(function: F) -> F:
    """Add what says what is kept, and shown."""
    options = (
        click.option(
            "--keep-captures", is_flag=True, help="Keep the packets that peers capture, in OUT/RUN/peer."
        ),
        click.option(
            "--report/--no-report", default=True, help="Build the report in OUT/report.  [default: build]"
        ),
        verbose_option,
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command("run")
@rack_option
@suite_option
@boards_option
@measure_options
@click.option(
    "--boots",
    type=click.IntRange(1, BOOTS_MAX),
    metavar="N",
    help="Boot each board so often, and measure all of its cases in each boot.  [default: 1]",
)
@compare_options
@keep_options
@thresholds_option
@out_option
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    rack: Path,
    out: Path,
    **options: Any,
) -> None:
    """Build, flash, measure and judge.

    The same as `python -m pytest hil/benches --rack … --suite …`, with progress and a summary.
    """
    ended.begin(out, "hil run")
    rack = leased(rack, out, wait_s=context.params["wait"])
    hand_over({"rack": rack, "out": out, **options}, debug=bool(context.obj))


FLAGS = ("keep_captures", "unchanged", "across_idf", "spread")


def hand_over(options: Mapping[str, Any], *, debug: bool) -> None:
    """Go on as pytest, in the same process; ``options`` by their names here.

    Raises ConfigError where the rack has no board of the target and with the labels that are asked for.
    """
    rest = dict(options)
    rack, out, boards, target = (rest.pop(name, None) for name in ("rack", "out", "boards", "target"))
    labels = rest.pop("labels", None) or ()
    report, firmware = rest.pop("report", True), rest.pop("firmware", None)
    verbose = rest.pop("verbose", False)
    flags = [name for name in FLAGS if rest.pop(name, False)]
    # -P: what lies in the folder that somebody is in hides no module; without pytest-embedded's plugin, whose
    # processes a run does not need
    argv = [sys.executable, "-P", "-m", "hil.fixtures", *map(str, bench_folders())]
    argv += ["-c", str(TOOL_BENCHES / "pytest.ini"), f"--rootdir={IMPORT_ROOT}"]
    argv += ["-p", "no:cacheprovider", "-p", "no:pytest_embedded", "--hil-ui"]
    given = {name: value for name, value in rest.items() if value is not None}
    argv += [f"--{name.replace('_', '-')}={value}" for name, value in {"rack": rack, **given}.items()]
    argv += [f"--board={board}" for board in boards or ()]
    argv += [f"--board-label={label}" for label in labels]
    if target or labels:
        load_rack(rack).select(boards or (), target or "", labels)  # what nobody has is said at once
        argv += [f"--board-target={target}"] if target else []
    argv += [f"--out={out.absolute()}"]
    argv += [f"--firmware={firmware}"] if firmware else []
    argv += [] if report else ["--no-report"]
    argv += [f"--{name.replace('_', '-')}" for name in flags]
    argv += ["--hil-verbose"] if verbose else []
    argv += ["--hil-debug"] if debug else []
    _flush_stdout()
    # the same process goes on as pytest, so that signals and a kill reach what does the work
    os.execve(argv[0], argv, {**os.environ, "PYTHONPATH": python_path()})  # noqa: S606 - an argument list, no shell


def leased(rack: Path, out: Path, *, wait_s: float) -> Path:
    """Return the rack file, or one of boards that a labgrid coordinator leased to this process."""
    origin = rack_with_places(rack)
    settings = read_places(origin)
    if settings is None:
        return rack
    found = lease_places(origin, settings, out, wait_s=wait_s)
    boards = ", ".join(board.id for board in load_rack(found).boards)
    click.echo(f"Leased from {settings.coordinator}: {boards} ({found})")
    return found


def _flush_stdout() -> None:
    """Let what the caller reads no longer be dropped; it decides nothing."""
    with suppress(OSError):
        sys.stdout.flush()
