# SPDX-License-Identifier: Apache-2.0
"""``hil exporter``: the configuration with which labgrid-exporter offers a rack's boards."""

from __future__ import annotations

from pathlib import Path

import click

from hil.boards.places.exporter import exporter_config, place_commands
from hil.boards.rack import load_rack
from hil.cli.options import out_option, rack_option
from hil.virtual.virtual_rack import boards_up


@click.command("exporter")
@rack_option
@out_option
@click.option(
    "--coordinator",
    default="127.0.0.1:20408",
    show_default=True,
    metavar="HOST:PORT",
    help="The labgrid coordinator, for the commands that are printed as comments.",
)
def command(*, rack: Path, out: Path, coordinator: str) -> None:
    """Print a labgrid exporter's configuration for the rack's boards; virtual ones must be up."""
    loaded = load_rack(rack)
    config = exporter_config(loaded, boards_up(loaded, out))
    click.echo(f"# Boards of rack {loaded.name} for labgrid-exporter. Start it where they are:")
    click.echo(f"#   labgrid-exporter -c {coordinator} THIS_FILE")
    click.echo("# Once, so that the coordinator knows them as places:")
    for line in place_commands(loaded, coordinator):
        click.echo(f"#   {line}")
    click.echo(config, nl=False)
