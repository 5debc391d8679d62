# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share.

Columns for the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from hil.base.paths import PROJECT_RACK, PROJECT_ROOT, PROJECT_THRESHOLDS, TOOL_RACKS
from hil.history import default_history

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_RACK = PROJECT_RACK if PROJECT_RACK.is_file() else TOOL_RACKS / "virtual.yaml"
DEFAULT_OUT = PROJECT_ROOT / "out"
FOLDER = click.Path(path_type=Path, file_okay=False)


def rack_option(function: F) -> F:
    return click.option(
        "--rack",
        type=click.Path(path_type=Path),
        default=DEFAULT_RACK,
        help="Rack file. [default: hil/rack.yaml of the project, else the virtual rack]",
    )(function)


def out_option(function: F) -> F:
    return click.option(
        "--out",
        type=FOLDER,
        default=DEFAULT_OUT,
        help="Where results are. [default: out]",
    )(function)


def thresholds_option(function: F) -> F:
    return click.option(
        "--thresholds",
        type=click.Path(path_type=Path),
        default=PROJECT_THRESHOLDS,
        help="Folder of limits and suites; of benches without a file in it, the tool's own hold. "
        f"[default: {PROJECT_THRESHOLDS.relative_to(PROJECT_ROOT)}]",
    )(function)


def history_option(function: F) -> F:
    return click.option(
        "--history",
        "history_folder",
        type=FOLDER,
        default=default_history,
        help="Folder of the history. [default: out/history, or [keep] history of hil.toml]",
    )(function)


def suite_option(function: F) -> F:
    return click.option(
        "--suite",
        default="quick",
        show_default=True,
        help="first, quick, pr, nightly, a case as reports name it, or an expression: 'pr and qos=1'.",
    )(function)


def boards_option(function: F) -> F:
    return click.option(
        "--board", "boards", multiple=True, metavar="ID", help="Only this board; repeatable."
    )(function)


def undecided_option(function: F) -> F:
    return click.option(
        "--undecided-status",
        type=click.Choice(("0", "4")),
        default="4",
        envvar="HIL_UNDECIDED_STATUS",
        show_default=True,
        show_envvar=True,
        help="Exit status where a figure is undecided and no policy makes that a failure; "
        "verdicts.json keeps 4.",
    )(function)


def verbose_option(function: F) -> F:
    return click.option(
        "--verbose", is_flag=True, help="End with the tables of all figures, not the few that matter."
    )(function)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line for each row, its columns two blanks apart and as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
