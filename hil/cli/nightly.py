# SPDX-License-Identifier: Apache-2.0
"""``hil nightly``: what a night measures beside the candidate."""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from hil.cli.options import thresholds_option
from hil.history.nightly.reference import load_references, require_one, tonight


@click.group("nightly")
def command() -> None:
    """Nights; docs/operate/nightly.md shows the whole."""


@command.command("reference", short_help="Print the reference firmware's commits.")
@thresholds_option
def reference(thresholds: Path) -> None:
    """Print the commits of the reference firmware to build and to measure tonight, one a line.

    Two where a renewal overlaps; a night goes from noon to noon UTC. Warns of renewals that overlap too few
    nights.
    """
    references = load_references(thresholds)
    for warning in references.warnings:
        click.echo(f"hil: warning: {warning}", err=True)
    date = tonight(datetime.datetime.now(tz=datetime.UTC))
    for found in require_one(references, date, thresholds):
        click.echo(found.commit)
