# SPDX-License-Identifier: Apache-2.0
"""``hil ci pin-racks``: have racks take jobs from a fixed ref only."""

from __future__ import annotations

from pathlib import Path

import click

from hil.ci.pinning import CALLER, pin


@click.command("pin-racks")
@click.option("--repository", required=True, metavar="OWNER/NAME", help="This repository at GitHub.")
@click.option("--ref", default="main", show_default=True, help="Its default branch, mostly.")
def pin_command(repository: str, ref: str) -> None:
    """Have pr.yml call the racks' workflow at a fixed ref of REPOSITORY, instead of the pull request's own.

    Commit and merge that, then limit the racks' runner group to it: `hil ci doctor` prints the command.
    """
    click.echo(f"{CALLER} calls {pin(Path.cwd(), repository, ref)}")
