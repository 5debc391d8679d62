# SPDX-License-Identifier: Apache-2.0
"""``hil nightly``: what a night measures beside the candidate."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import click

from hil.cli.options import thresholds_option
from hil.history.nightly.reference import load_references, require_one, tonight


@click.group("nightly")
def command() -> None:
    """Nights; docs/operate/nightly.md shows the whole."""


@command.command("reference", short_help="Print the reference firmware's commits.")
@click.option(
    "--night",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="The night of this evening. [default: tonight; a night goes from noon to noon UTC]",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list, empty where there is none.")
@thresholds_option
def reference(night: datetime.datetime | None, thresholds: Path, *, as_json: bool) -> None:
    """Print the commits of the reference firmware to build and to measure in a night, one a line.

    Two where a renewal overlaps. Warns of renewals that overlap too few nights.
    """
    references = load_references(thresholds)
    for warning in references.warnings:
        click.echo(f"hil: warning: {warning}", err=True)
    date = night.date() if night else tonight(datetime.datetime.now(tz=datetime.UTC))
    if as_json:
        click.echo(json.dumps([found.commit for found in references.of(date)]))
        return
    for found in require_one(references, date, thresholds):
        click.echo(found.commit)
