# SPDX-License-Identifier: Apache-2.0
"""``hil build``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import click

from hil.base.errors import ConfigError
from hil.base.idf_project import read_cmake
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.build import HOST_TARGET, TARGETS, VIRTUAL_TARGETS, build
from hil.boards.firmware.build_folder import DEFAULT_TICK_HZ, TICKS_HZ, Image
from hil.boards.firmware.bundle import write_bundle
from hil.boards.firmware.failure import told
from hil.boards.firmware.product.at import build_product_at, product_writer
from hil.boards.firmware.product.build import Publish, build_product
from hil.boards.firmware.revision import Revision, SourceState, find_revision, source_state
from hil.boards.firmware.ruler import find_ruler
from hil.model import Ruler


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
    "--ruler-of",
    metavar="REV",
    help="With --at: take what measures (agent, benches, what they measure by) from this commit, or with . "
    "from the working tree; where that does not build, REV of --at keeps its own, and the bundle says so.",
)
@click.option(
    "--plant-publish-us",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help="Plant a slowdown for the gate to find: N us of busy waiting before each MQTT publish.",
)
@click.option(
    "--bundle",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the build to DIR/TARGET (another tick: DIR/TARGET+tick100; with -C: DIR/TARGET+product), to "
    "be measured on another machine (hil run --firmware DIR).",
)
@click.option(
    "-C",
    "product",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Build the ESP-IDF project in DIR: for a virtual board, or list what the host lacks; for a chip "
    "with idf.py.",
)
@click.option(
    "--sdkconfig",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="With -C: options that come after the project's own sdkconfig.",
)
@click.option(
    "--stubs",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="With -C: write a component to DIR that answers what the host lacks, to be filled in.",
)
@click.option(
    "--failure",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where it fails, write there whether it is the sources that do not build, for `hil run "
    "--no-base-because FILE`.",
)
def command(
    target: str,
    tick_hz: str,
    at: str | None,
    ruler_of: str | None,
    plant_publish_us: int | None,
    bundle: Path | None,
    product: Path | None,
    sdkconfig: Path | None,
    stubs: Path | None,
    failure: Path | None,
) -> None:
    """Build the firmware for one target, where anything changed; or a product's (-C)."""
    _check_revision(at, ruler_of, of_product=product is not None)
    if plant_publish_us and (product or at):
        raise ConfigError(
            "--plant-publish-us works only on hil's own firmware in the working tree.",
            next_step="leave -C and --at out.",
        )
    if product:
        with told(failure):
            click.echo(str(_build_product(product, target, at, bundle, sdkconfig, stubs)))
        return
    if sdkconfig or stubs:
        raise ConfigError("--sdkconfig and --stubs are only for a product.", next_step="hil build -C DIR.")
    if bundle and target == HOST_TARGET:
        raise ConfigError(
            f"the target {target} builds a host program, not an image to flash, so there is "
            "nothing to bundle.",
            next_step="leave --bundle out.",
        )
    with told(failure):
        click.echo(str(_build(target, tick_hz, at, ruler_of, bundle, plant_publish_us or 0)))


def _check_revision(at: str | None, ruler_of: str | None, *, of_product: bool) -> None:
    """Raise ConfigError where --at and --ruler-of name nothing, or do not go with the rest."""
    if at == "":  # mostly a variable that is not set; the working tree would be another firmware
        raise ConfigError(
            "--at is empty, so there is no commit to build.",
            next_step="name a commit, or leave --at out to build the working tree.",
        )
    if ruler_of is not None and of_product:
        raise ConfigError(
            "--ruler-of with -C: a product is measured from the host, so its build has no ruler.",
            next_step="leave --ruler-of out.",
        )
    if ruler_of is not None and (at is None or not ruler_of):
        raise ConfigError(
            f"--ruler-of {'names no commit' if at else 'stands without --at'}; "
            "a build of the working tree has its own ruler.",
            next_step="hil build --at BASE --ruler-of HEAD.",
        )


def _build(
    target: str, tick_hz: str, at: str | None, ruler_of: str | None, bundle: Path | None, plant_us: int
) -> Path:
    revision = find_revision(PROJECT_ROOT, at) if at is not None else None
    ruler = find_ruler(PROJECT_ROOT, ruler_of) if ruler_of is not None else None
    publish = _writer(bundle, Image(target, int(tick_hz)), _state(revision)) if bundle else None
    return build(
        target,
        tick_hz=int(tick_hz),
        say=click.echo,
        revision=revision,
        ruler=ruler,
        plant_us=plant_us,
        publish=publish,
    )


def _build_product(
    folder: Path, target: str, at: str | None, bundle: Path | None, sdkconfig: Path | None, stubs: Path | None
) -> Path:
    """Build a product, of the working tree or of a commit, into the bundle if one is named."""
    if stubs and (at is not None or target not in VIRTUAL_TARGETS):
        raise ConfigError(
            "--stubs is only for the working tree and virtual boards.",
            next_step=f"leave --at out, and choose one of: {', '.join(VIRTUAL_TARGETS)}.",
        )
    revision = find_revision(folder, at) if at is not None else None
    publish: Publish | None = None
    if bundle:
        state = SourceState(revision.commit, dirty=False) if revision else source_state(folder, ":/")
        state = dataclasses.replace(state, product=read_cmake(folder).name)
        publish = product_writer(bundle, Image(target, product=True), state, click.echo)
    if revision is None:
        return build_product(
            folder,
            target=target,
            say=click.echo,
            sdkconfig=sdkconfig,
            stubs=stubs,
            publish=publish,
        )
    return build_product_at(
        folder, revision, target=target, say=click.echo, sdkconfig=sdkconfig, publish=publish
    )


def _writer(bundle: Path, image: Image, state: SourceState) -> Callable[[Path, Ruler | None], Path]:
    """Return what puts a build into the bundle."""

    def write(folder: Path, ruler: Ruler | None) -> Path:
        whole = dataclasses.replace(state, ruler=ruler)
        return write_bundle(folder, image, bundle, whole, say=click.echo)

    return write


def _state(revision: Revision | None) -> SourceState:
    return SourceState(revision.commit, dirty=False) if revision else source_state(PROJECT_ROOT)
