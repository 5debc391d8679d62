# SPDX-License-Identifier: Apache-2.0
"""The builds that a run measures: hil's own firmware, and a team's product, image by image.

``--firmware`` may name a bundle, or one build of either: what it holds is found by its bytes, and the other
images are built here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_FILE, PROJECT_ROOT
from hil.base.project import read_project
from hil.base.reading import IMAGE_MOST_BYTES, read_at_most
from hil.boards.firmware.build import BUILD_ROOT, build_all
from hil.boards.firmware.build_folder import Image, app_image, image_sha256
from hil.boards.firmware.product.build import build_product
from hil.boards.firmware.selection import Firmware, bundle_folders, find_firmware
from hil.store.files import short_path

AGENT_MARK = b"@hil %d %"  # how the agent's lines begin (firmware/components/agent/wire_line.c)

Say = Callable[[str], None]


def find_builds(firmware: Path | None, images: Iterable[Image], say: Say) -> Mapping[Image, Firmware]:
    """Return the build of each image: those in ``firmware``, the others built where anything changed.

    Raises:
        ConfigError: a build that failed or is of another chip; a build without hil's agent where nothing but
            the agent's benches is measured, or one with it where only probes are.
    """
    images = tuple(images)
    here = {image for image in images if firmware and holds(firmware, image)}
    if firmware and not here:
        if bundle_folders(firmware):
            find_firmware(firmware, images[0])  # says what it holds
        raise nothing_in("--firmware", firmware, images)
    found = {image: find_firmware(firmware, image) for image in images if firmware and image in here}
    own = [image for image in images if image not in here and not image.product]
    folders = dict(build_all(own, say=say))
    for image in images:
        if image not in here and image.product:
            folders[image] = _build_product(image, say)
    return {**found, **{image: Firmware(folder, image_sha256(folder)) for image, folder in folders.items()}}


def holds(firmware: Path, image: Image) -> bool:
    """Return whether a bundle or build is for an image: a bundle names it, a build has the agent or not.

    A bundle that names none of a kind is asked for it all the same, and says what it holds.
    """
    names = bundle_folders(firmware)
    if names:
        return str(image) in names or not image.product
    try:
        return has_agent(firmware) != image.product
    except ConfigError:
        return not image.product  # find_firmware() says what is wrong with it


def image_in(firmware: Path, target: str) -> Image:
    """Return which image of a target a bundle or a build is meant for: a product's where it is not hil's."""
    own, product = Image(target), Image(target, product=True)
    return own if str(own) in bundle_folders(firmware) or not holds(firmware, product) else product


def has_agent(build_dir: Path) -> bool:
    """Return whether a build holds hil's agent, which answers at the console.

    Raises ConfigError: no build, or a damaged one, of which it cannot be said.
    """
    if AGENT_MARK in read_at_most(app_image(build_dir), IMAGE_MOST_BYTES):
        return True
    image_sha256(build_dir)
    return False


def nothing_in(option: str, firmware: Path, images: Iterable[Image]) -> ConfigError:
    """Return what says that a bundle or a build, named by an option, is of none of the images."""
    if any(image.product for image in images):
        return ConfigError(
            f"{option} {short_path(firmware)} has hil's agent, but only probes are selected, which "
            "measure a product.",
            next_step=f"leave {option} out, or name a build of the product.",
        )
    return ConfigError(
        f"{option} {short_path(firmware)} is a build without hil's agent, but the selected benches "
        "need the agent.",
        next_step="measure it with a probe (docs/start/measure-a-product.md), or build the agent into it "
        "(docs/start/add-the-component.md).",
    )


def _build_product(image: Image, say: Say) -> Path:
    """Build the project's own firmware. Raises ConfigError."""
    if not (PROJECT_ROOT / PROJECT_FILE).is_file():
        raise ConfigError(
            f"a probe measures a project's own firmware, but {PROJECT_ROOT} holds no {PROJECT_FILE}.",
            next_step="go to the project and run hil init, or pass a build: --firmware DIR.",
        )
    firmware = read_project(PROJECT_ROOT).firmware
    return build_product(firmware, target=image.target, say=say, build_root=BUILD_ROOT)
