# SPDX-License-Identifier: Apache-2.0
"""``hil migrate``: files of older days brought to what they are today, and back."""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from hil.base.errors import ConfigError
from hil.history.migrating import NOTE, OLD, migrate, take_back
from hil.history.migration import find_steps
from hil.store.files import short_path


@click.command("migrate")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Change nothing: say what would be changed.")
@click.option("--back", is_flag=True, help="Undo what was migrated in PATH.")
def command(path: Path, *, dry_run: bool, back: bool) -> None:
    """Bring PATH (a file, or a folder such as the project's) to today's formats.

    Each file that changes is kept beside it, its name ending in .old, and a note (migrated.json) lets --back
    undo all of it. Older files are read without it too, but limits: those it can save from being changed by
    hand.
    """
    folder = path if path.is_dir() else path.parent
    if back:
        if dry_run:
            raise ConfigError(
                "--back with --dry-run: nothing is said before it is done.", next_step="choose one."
            )
        for one in take_back(folder):
            click.echo(f"{one.target}: as before")
        return
    steps = find_steps(path)
    for step in steps:
        moved = f" → {short_path(step.target)}" if step.target != step.path else ""
        click.echo(f"{short_path(step.path)}{moved}: {step.why}")
    if not steps:
        click.echo(f"{path}: everything is of today")
    elif dry_run:
        click.echo(f"{_count(len(steps))} would be changed")
    else:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        migrate(folder, steps, when_utc=now)
        click.echo(
            f"{_count(len(steps))} changed; what was there is beside it ({OLD}), and {folder / NOTE} knows. "
            f"Undo: hil migrate --back {path}"
        )


def _count(number: int) -> str:
    return f"{number} file{'' if number == 1 else 's'}"
