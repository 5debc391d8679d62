# SPDX-License-Identifier: Apache-2.0
"""``hil run``: hand over to pytest, which collects the benches and runs the boot loop."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from hil.base.paths import IMPORT_ROOT, TOOL_BENCHES, bench_folders, python_path
from hil.boards.places.settings import rack_with_places, read_places
from hil.boards.rack import load_rack
from hil.cli.emulated import in_emulator
from hil.cli.options import run_options
from hil.run.options import PREFIX, RunOptions
from hil.store import ended
from hil.virtual.emulator.drivers import DRIVERS


@click.command("run")
@run_options("run")
@click.option(
    "--port",
    metavar="PORT",
    help="Measure the board at this serial port; its rack file is written where there is none.",
)
@click.option(
    "--emulator",
    type=click.Choice(tuple(DRIVERS)),
    help="Measure the build of --firmware on an emulated board of its chip, in place of a rack.",
)
@click.pass_context
def command(context: click.Context, /, *, port: str | None, emulator: str | None, **given: Any) -> None:
    """Build, flash, measure and judge.

    The same as `python -m pytest hil/benches --rack … --hil-suite …`, with progress and a summary.
    """
    options = RunOptions(**given, debug=bool(context.obj))
    if port and emulator:
        raise click.UsageError("--port is a board, --emulator is not: give one of them.")
    if port:
        from hil.cli.desk import at_port  # a third of what `hil run` would import

        options = at_port(options, port)
    measure(in_emulator(options, emulator) if emulator else options)


def measure(options: RunOptions) -> None:
    """Lease the boards where a coordinator gives them out, and go on as pytest."""
    options.check()
    ended.begin(options.out, "hil run")
    hand_over(replace(options, rack=leased(options)))


def hand_over(options: RunOptions) -> None:
    """Go on as pytest, in the same process.

    Raises ConfigError where the rack has no board of the target and with the labels that are asked for.
    """
    if options.target or options.labels:
        load_rack(options.rack).select(options.boards, options.target, options.labels)  # said at once
    told = replace(options, out=options.out.absolute(), ui=True)
    # -P: what lies in the folder that somebody is in hides no module; without pytest-embedded's plugin, whose
    # processes a run does not need, and without hypothesis', which imports all of it at the session's end
    argv = [sys.executable, "-P", "-m", "hil.fixtures", *map(str, bench_folders())]
    argv += ["-c", str(TOOL_BENCHES / "pytest.ini"), f"--rootdir={IMPORT_ROOT}"]
    argv += ["-p", "no:cacheprovider", "-p", "no:pytest_embedded", "-p", "no:hypothesispytest"]
    argv += told.arguments(PREFIX)
    _flush_stdout()
    # the same process goes on as pytest, so that signals and a kill reach what does the work
    os.execve(argv[0], argv, {**os.environ, "PYTHONPATH": python_path()})  # noqa: S606 - an argument list, no shell


def leased(options: RunOptions) -> Path:
    """Return the rack file, or one of boards that a labgrid coordinator leased to this process."""
    origin = rack_with_places(options.rack)
    settings = read_places(origin)
    if settings is None:
        return options.rack
    from hil.boards.places.lease import lease_places

    found = lease_places(origin, settings, options.out, wait_s=options.wait)
    boards = ", ".join(board.id for board in load_rack(found).boards)
    click.echo(f"Leased from {settings.coordinator}: {boards} ({found})")
    return found


def _flush_stdout() -> None:
    """Let what the caller reads no longer be dropped; it decides nothing."""
    with suppress(OSError):
        sys.stdout.flush()
