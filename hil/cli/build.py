# SPDX-License-Identifier: Apache-2.0
"""``hil build``."""

from __future__ import annotations

import functools
from pathlib import Path

import click

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.build import HOST_TARGET, TARGETS, build
from hil.boards.firmware.build_folder import DEFAULT_TICK_HZ, TICKS_HZ, Image
from hil.boards.firmware.bundle import write_bundle
from hil.boards.firmware.revision import Revision, SourceState, find_revision, source_state


@click.command("build")
@click.option(
    "--target",
    default="virtual-esp32",
    show_default=True,
    metavar="TARGET",
    help=f"One of {', '.join(TARGETS)}.",
)
@click.option(
    "--tick-hz",
    type=click.Choice([str(tick_hz) for tick_hz in TICKS_HZ]),
    default=str(DEFAULT_TICK_HZ),
    show_default=True,
    help="FreeRTOS's tick; cases with tick_hz=100 need an image of their own.",
)
@click.option(
    "--at", metavar="REV", help="Build the firmware of this commit; what builds it stays as it is here."
)
@click.option(
    "--bundle",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the build to DIR/TARGET (another tick: DIR/TARGET+tick100), to be measured on another "
    "machine (hil run --firmware DIR).",
)
def command(target: str, tick_hz: str, at: str | None, bundle: Path | None) -> None:
    """Build the firmware for one target, where anything changed."""
    if bundle and target == HOST_TARGET:
        raise ConfigError(
            f"the target {target} gives a program and no image to flash, so there is nothing to bundle.",
            next_step="leave --bundle out.",
        )
    if at == "":  # mostly a variable that is not set; the working tree would be another firmware
        raise ConfigError(
            "the revision of --at is empty, so there is no commit to build.",
            next_step="name a commit, or leave --at out to build the working tree.",
        )
    revision = find_revision(PROJECT_ROOT, at) if at is not None else None
    publish = None
    if bundle:
        publish = functools.partial(
            write_bundle,
            image=Image(target, int(tick_hz)),
            bundle=bundle,
            state=_state(revision),
            say=click.echo,
        )
    folder = build(target, tick_hz=int(tick_hz), say=click.echo, revision=revision, publish=publish)
    click.echo(str(folder))


def _state(revision: Revision | None) -> SourceState:
    return SourceState(revision.commit, dirty=False) if revision else source_state(PROJECT_ROOT)
