# SPDX-License-Identifier: Apache-2.0
"""``hil report``: the report site, built again from stored runs."""

from __future__ import annotations

from pathlib import Path

import click

from hil.cli.options import out_option
from hil.history import history_of


@click.group("report")
def command() -> None:
    """Build the report site again from stored runs."""


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
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the history. [default: OUT/history]",
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
    *,
    files: bool,
    append: bool,
) -> None:
    """Write OUT/report for RUN (a folder below out, by default the latest).

    Several runs, such as the racks of one night, become one report.
    """
    from hil.reports.rebuild import build_report

    folder = history or history_of(out)
    build_report(runs, legs=legs, out=out, history_folder=folder, single_file=not files, append=append)
