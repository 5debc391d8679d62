# SPDX-License-Identifier: Apache-2.0
"""Build a product as it was at a commit: its repository's files of then, this machine's tools and host."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from hil.base.errors import ConfigError, RefusedSourcesError
from hil.base.idf_project import read_cmake
from hil.base.paths import PROJECT_FILE
from hil.base.project import read_project
from hil.boards.firmware.build import BUILD_ROOT, Say, locked
from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.bundle import write_bundle
from hil.boards.firmware.export import exported
from hil.boards.firmware.failure import refuses_sources
from hil.boards.firmware.product.build import Publish, build_product
from hil.boards.firmware.product.project import described
from hil.boards.firmware.revision import Revision, SourceState


def build_product_at(
    folder: Path,
    revision: Revision,
    *,
    root: Path | None = None,
    target: str = "virtual-esp32",
    say: Say = print,
    sdkconfig: Path | None = None,
    build_root: Path = BUILD_ROOT,
    publish: Publish | None = None,
) -> Path:
    """Build the product in ``folder`` as it was at ``revision``; as build_product().

    ``root`` is the project's: its hil.toml of then says where the firmware was, if there was one.

    Raises:
        RefusedSourcesError: the sources of the commit do not build.
        ConfigError: they could not be built for another reason, or git does not give them.
    """
    name = f"{Image(target, product=True)}-sources"
    there = build_root / "at" / name
    with (
        locked(there.with_name(f"{name}.lock"), f"the product of {revision}", say),
        exported(folder, revision, there) as sources,
    ):
        say(f"Building the product of {revision}")
        try:
            firmware = _firmware_of_then(sources, os.path.relpath(root or folder, folder))
            # what was built of another commit must not take part
            shutil.rmtree(build_root / "at" / f"{read_cmake(firmware).name}-{target}", ignore_errors=True)
            return build_product(
                firmware,
                target=target,
                say=say,
                sdkconfig=sdkconfig,
                build_root=build_root / "at",
                tree_root=build_root,
                publish=publish,
                of_git=described(folder, revision.commit),
            )
        except ConfigError as error:
            raise _told(error, revision, there) from error


def product_writer(bundle: Path, image: Image, state: SourceState, say: Say) -> Publish:
    """Return what puts a product's build into a bundle."""

    def write(build_dir: Path) -> Path:
        return write_bundle(build_dir, image, bundle, state, say=say)

    return write


def _firmware_of_then(sources: Path, up: str) -> Path:
    """Return the folder of the firmware; ``up`` leads to the project's. Raises RefusedSourcesError."""
    root = Path(os.path.normpath(sources / up))
    if not (root / PROJECT_FILE).is_file():
        return sources
    try:
        return read_project(root).firmware
    except ConfigError as error:
        raise RefusedSourcesError(error.sentence, next_step=error.next_step) from error


def _told(error: ConfigError, revision: Revision, sources: Path) -> ConfigError:
    refused = isinstance(error, RefusedSourcesError) or (
        error.log and refuses_sources(Path(error.log), sources)
    )
    kind: Callable[..., ConfigError] = RefusedSourcesError if refused else ConfigError
    return kind(
        f"the product of {revision} cannot be built here: {error.sentence.replace(f'{sources}/', '')}",
        log=error.log,
        next_step="compare with a later commit, or measure without one to compare with.",
    )
