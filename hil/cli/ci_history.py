"""``hil ci history``: the branches that keep what nights measured."""

from __future__ import annotations

from pathlib import Path

import click

from hil.ci import history as history_branch
from hil.cli.options import DEFAULT_OUT
from hil.history import DEFAULT_HISTORY

FOLDER = click.Path(path_type=Path, file_okay=False)
MOST_NAMES = 5
HISTORY_FOLDERS = {
    history_branch.BRANCH: DEFAULT_OUT / "history",
    history_branch.DATA_BRANCH: DEFAULT_HISTORY,
}

history_option = click.option(
    "--history",
    "folder",
    type=FOLDER,
    help="Folder of its files. [default: out/history, out/hil-data]",
)
branch_option = click.option(
    "--branch",
    type=click.Choice(list(HISTORY_FOLDERS)),
    default=history_branch.BRANCH,
    show_default=True,
    help="hil-history: what reports need of nights; hil-data: boot values, a file a run.",
)
remote_option = click.option("--remote", default="origin", show_default=True, help="Of this repository.")


@click.group("history")
def command() -> None:
    """The branches that keep the figures of nightly runs."""


@command.command("fetch")
@branch_option
@history_option
@remote_option
def fetch_history(branch: str, folder: Path | None, remote: str) -> None:
    """Write the branch's files into the folder; it need not exist yet."""
    folder = folder or HISTORY_FOLDERS[branch]
    names = history_branch.fetch(Path.cwd(), folder, remote=remote, branch=branch)
    which = ", ".join(names) if len(names) <= MOST_NAMES else f"{len(names)} files"
    click.echo(f"{branch}: {f'{which} in {folder}' if names else 'it does not exist yet'}")


@command.command("push")
@branch_option
@history_option
@remote_option
@click.option("--message", default="Append a run", show_default=True)
def push_history(branch: str, folder: Path | None, remote: str, message: str) -> None:
    """Commit the folder's files to the branch, beside what others have pushed meanwhile."""
    folder = folder or HISTORY_FOLDERS[branch]
    commit = history_branch.push(Path.cwd(), folder, message, remote=remote, branch=branch)
    click.echo(f"{branch}: {f'now at {commit[:12]}' if commit else 'nothing new'}")
