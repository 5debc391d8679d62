"""``hil build``."""

from __future__ import annotations

import click

from hil.build import TARGETS, build


@click.command("build")
@click.option(
    "--target",
    default="virtual-esp32",
    show_default=True,
    metavar="TARGET",
    help=f"One of {', '.join(TARGETS)}.",
)
def command(target: str) -> None:
    """Build the firmware for one target, where anything changed."""
    build_dir = build(target, say=click.echo)
    click.echo(str(build_dir))
