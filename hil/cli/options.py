# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share: those of a run, made from its table, and the history's.

Columns for the terminal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from hil.base.errors import RigError
from hil.cli import completion
from hil.history import default_history
from hil.run.options import DEFAULT_OUT as DEFAULT_OUT
from hil.run.options import DEFAULT_RACK as DEFAULT_RACK
from hil.run.options import Command, OptionRow, rows_of

F = TypeVar("F", bound=Callable[..., Any])

FOLDER = click.Path(path_type=Path, file_okay=False)
_COMPLETED = {"boards": completion.boards, "suite": completion.suites}


def run_options(command: Command, *only: str) -> Callable[[F], F]:
    """Add the options that a command has in the table of a run; ``only`` those of these names, if any."""
    rows = [row for row in rows_of(command) if not only or row.name in only]

    def decorate(function: F) -> F:
        for row in reversed(rows):
            function = _option(row, command)(function)
        return function

    return decorate


def _option(row: OptionRow, command: Command) -> Callable[[F], F]:
    facts = row.option
    more: dict[str, Any] = {"envvar": facts.env, "show_envvar": True} if facts.env else {}
    more |= {"metavar": facts.metavar} if facts.metavar else {}
    return click.option(
        row.flag(), row.name, type=_type(row), is_flag=row.kind is bool, multiple=row.is_repeatable,
        default=row.default_of(command), help=row.help_of(command), shell_complete=_COMPLETED.get(row.name),
        **more,
    )  # fmt: skip


def _type(row: OptionRow) -> Any:
    if row.option.choices:
        return click.Choice(row.option.choices)
    if row.option.most:
        return click.IntRange(1, row.option.most)
    if row.kind is Path:
        return FOLDER if row.option.is_folder else click.Path(path_type=Path)
    return row.kind


rack_option = run_options("run", "rack")
out_option = run_options("run", "out")
boards_option = run_options("run", "boards")
board_argument = click.argument("board_id", metavar="BOARD", shell_complete=completion.boards)


def ci_folder() -> Path:
    """Return where the steps of a workflow run hand things on: plan.json, bundle/, legs/, verdict/."""
    return Path(os.environ.get("HIL_CI") or DEFAULT_OUT / "ci")


def history_option(function: F) -> F:
    return click.option(
        "--history",
        "history_folder",
        type=FOLDER,
        default=default_history,
        help="Folder of the history. [default: out/history, or [keep] history of hil.toml]",
    )(function)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line for each row, its columns two blanks apart and as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def count(number: int, noun: str) -> str:
    """Return "1 run", "2 runs"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def write_text(path: Path, text: str, *, otherwise: str = "") -> None:
    """Write a file of the project's, with its folder. Raises RigError: this user may not."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RigError(
            f"{path} cannot be written: {error.strerror}.",
            next_step=f"give this user write access to that folder{otherwise}.",
        ) from error


def warn(sentences: Sequence[str]) -> None:
    """Print a warning each to standard error, such as which files of the history are left out."""
    for sentence in sentences:
        click.echo(f"warning: {sentence}", err=True)
