# SPDX-License-Identifier: Apache-2.0
"""``hil ci wanted``: what a rack's job asks GitHub before it takes a board."""

from __future__ import annotations

import os
from pathlib import Path

import click

from hil.base.errors import HilError
from hil.ci import legs
from hil.ci.event import read_event
from hil.ci.excuses import NONE, Excuses
from hil.ci.wanted import why_unwanted
from hil.cli.ci_steps import github_of_job, say, write_outputs

LEGS = Path("out") / "ci" / "legs"


@click.command("wanted")
@click.argument("leg")
@click.option(
    "--legs", "legs_path", type=click.Path(path_type=Path, file_okay=False), default=LEGS, show_default=True,
    help="Folder with one folder a leg.",
)  # fmt: skip
def wanted_command(leg: str, legs_path: Path) -> None:
    """Say whether anybody waits for LEG's verdict still; where nobody does, record why it is not measured.

    The output `wanted` is false where a newer push has taken the place of this one, where the pull request
    was closed, or where a group of the merge queue is gone. Where GitHub does not answer, it is measured.
    """
    try:
        why = why_nobody_waits()
    except HilError as error:
        say(f"warning: nobody knows whether a newer push came, so {leg} is measured: {error}\n")
        why = ""
    if why:
        legs.write_skip(legs_path, leg, why)
    say(f"{leg}: {f'not measured, {why}' if why else 'wanted'}\n")
    write_outputs({"wanted": "false" if why else "true"})


def why_nobody_waits() -> str:
    """Return why this workflow run is not wanted any more, "" where it is. Raises HilError: no answer."""
    token = os.environ.get("GITHUB_TOKEN", "")
    return why_unwanted(github_of_job(token), read_event(os.environ, Path.cwd())) if token else ""


def excuses_now() -> Excuses:
    """Return what GitHub says of legs that left nothing; nothing where it does not answer."""
    try:
        return Excuses(unwanted=why_nobody_waits())
    except HilError as error:
        say(f"warning: nobody knows why a leg left nothing: {error}\n")
        return NONE
