"""``hil report``: the report site, built again from stored runs, and shown."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import click

from hil.base.paths import PROJECT_ROOT
from hil.cli.options import out_option


@click.group("report")
def command() -> None:
    """Build the report site again from stored runs; show it in a browser."""


@command.command("build")
@click.argument("runs", metavar="[RUN]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--legs",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of what CI legs left, DIR/LEG/RUN: each judged run; the others are named and left out.",
    metavar="DIR",
)
@out_option
@click.option(
    "--history",
    type=click.Path(path_type=Path),
    help="Folder with the history of earlier runs. [default: OUT/history]",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder with the boot values of earlier runs. [default: OUT/hil-data]",
    metavar="DIR",
)
@click.option(
    "--files/--single-file",
    default=False,
    help="Many files for a web server, or pages that open from disk. [default: single-file]",
)
@click.option("--append/--no-append", default=True, help="Add the runs to the history. [default: append]")
def build(
    runs: tuple[Path, ...],
    legs: Path | None,
    out: Path,
    history: Path | None,
    data: Path | None,
    *,
    files: bool,
    append: bool,
) -> None:
    """Write OUT/report for RUN (a folder below out, by default the latest).

    Several runs, such as the racks of one night, become one report.
    """
    options = [*(["--history", str(history)] if history else []), *(["--files"] if files else [])]
    options += [] if append else ["--no-append"]
    options += ["--data", str(data)] if data else []
    options += ["--legs", str(legs)] if legs else []
    _reports("build", "--out", str(out), *options, "--", *map(str, runs))


@command.command("serve")
@out_option
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="On 127.0.0.1. [default: a free one]")
def serve(out: Path, port: int) -> None:
    """Show OUT/report in a browser on this machine."""
    _reports("serve", "--out", str(out), "--port", str(port))


def _reports(*arguments: str) -> NoReturn:
    """Go on as the process that knows the reports, so that signals reach what does the work."""
    search = os.pathsep.join(filter(None, [str(PROJECT_ROOT), os.environ.get("PYTHONPATH")]))
    command_line = [sys.executable, "-m", "reports", *arguments]
    os.execve(sys.executable, command_line, {**os.environ, "PYTHONPATH": search})  # noqa: S606 - no shell meant
