# SPDX-License-Identifier: Apache-2.0
"""Which build is measured: one of a bundle, whose digests are right, or a build folder of one's own.

Whether two bundles put the same bytes on a board; where they do, there is nothing to measure twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from hil.base.errors import ConfigError
from hil.base.reading import IMAGE_MOST_BYTES, read_at_most
from hil.boards.firmware.app_image import (
    AppDescription,
    ImageError,
    read_app_description,
    read_image,
    unpack_elf,
)
from hil.boards.firmware.build_folder import (
    FLASHER_ARGS,
    Image,
    app_image,
    build_target,
    build_tick_hz,
    flash_files,
    flasher_args,
    image_sha256,
)
from hil.boards.firmware.bundle import DAMAGED, DIGESTS, VIRTUAL_PREFIX, Digests, file_sha256, verify
from hil.model import Ruler
from hil.store.files import typed_path


@dataclass(frozen=True)
class Firmware:
    """A build and the SHA-256 of its app image; ``origin`` is what its bundle says of where it comes from.

    ``ruler`` is None where its bundle names none, or there is no bundle.
    """

    build_dir: Path
    sha256: str
    origin: Mapping[str, Any] = field(default_factory=dict)
    ruler: Ruler | None = None


def find_firmware(path: Path, image: Image) -> Firmware:
    """Return the build of ``image`` in ``path``, a bundle or a single build folder, after checking it.

    Raises:
        ConfigError: no build there, none of this image, or one that is damaged.
        RigError: the disk does not give it.
    """
    path = path.resolve()
    if (path / DIGESTS).is_file():
        return _verified(path, image)
    folders = bundle_folders(path)
    if not folders or (path / FLASHER_ARGS).is_file():
        return _own_build(path, image)
    if str(image) not in folders:
        add = f"add it (hil build {image.options} --bundle {typed_path(path)})"
        raise ConfigError(
            f"the bundle {path} holds firmware for {', '.join(folders)}, but none for "
            f"{image}{_needed_by(image)}.",
            next_step=f"{add}, or {_leave_out(image)}.",
        )
    return _verified(folders[str(image)], image)


def bundle_folders(bundle: Path) -> dict[str, Path]:
    """Return the folders of a bundle by the images that name them; empty where it is no bundle."""
    found = sorted(bundle.glob(f"*/{DIGESTS}"))
    return {path.parent.name: path.parent for path in found if not path.parent.name.startswith(".")}


def verify_bundle(bundle: Path) -> dict[str, Digests]:
    """Check every file of a bundle, or of one of its folders; return the digests by image.

    Raises:
        ConfigError: no bundle there, an altered, missing or extra file, or a folder of another name.
        RigError: the disk does not give a file.
    """
    if (bundle / DIGESTS).is_file():
        digests = verify(bundle)
        return {str(digests.image): digests}
    folders = bundle_folders(bundle)
    if not folders:
        raise ConfigError(
            f"{bundle} is not a firmware bundle: no folder in it holds {DIGESTS}.",
            next_step="make one: hil build --target TARGET --bundle DIR.",
        )
    extra = sorted({path.name for path in bundle.iterdir()} - set(folders))
    if extra:
        raise ConfigError(
            f"{bundle} holds files that are not part of the bundle: {', '.join(extra)}.",
            next_step=f"remove them; each part of a bundle is a folder with {DIGESTS}.",
        )
    return {name: _verify_folder(folder, name) for name, folder in folders.items()}


def _verify_folder(folder: Path, name: str) -> Digests:
    digests = verify(folder)
    if str(digests.image) != name:
        raise ConfigError(f"{folder} holds a build for {digests.image}, not for {name}.", next_step=DAMAGED)
    return digests


def _verified(folder: Path, image: Image) -> Firmware:
    digests = verify(folder)
    if digests.image != image:
        raise _other_image(folder, str(digests.image), image)
    return Firmware(folder, digests.image_sha256, digests.origin, digests.ruler)


def _own_build(build_dir: Path, image: Image) -> Firmware:
    chip = replace(image, target=image.target.rpartition("-")[2])
    tick_hz = image.tick_hz if image.product else build_tick_hz(build_dir)
    found = Image(build_target(build_dir) or "no chip", tick_hz, image.product)
    if found != chip:
        raise _other_image(build_dir, str(found), chip)
    sha256 = image_sha256(build_dir)
    is_virtual = image.target.startswith(VIRTUAL_PREFIX)
    if _has_program(app_image(build_dir)) != is_virtual:
        other = (
            f"a chip ({chip.target})" if is_virtual else f"a virtual board ({VIRTUAL_PREFIX}{chip.target})"
        )
        raise _other_image(build_dir, other, image)
    return Firmware(build_dir, sha256)


def _has_program(path: Path) -> bool:
    """Return whether an image carries what a virtual board executes. Raises ConfigError: no ESP-IDF image."""
    content = read_at_most(path, IMAGE_MOST_BYTES)
    try:
        image = read_image(lambda offset, size: content[offset : offset + size], 0, len(content))
    except ImageError as error:
        raise ConfigError(f"{path}: {error}.", next_step="build it again.") from error
    return unpack_elf(image) is not None


def _other_image(folder: Path, found: str, wanted: Image) -> ConfigError:
    return ConfigError(
        f"{folder} is a build for {found}, not for {wanted}{_needed_by(wanted)}.",
        next_step=f"pass a build for that chip, or {_leave_out(wanted)}.",
    )


def _needed_by(image: Image) -> str:
    if image.product:
        return ", which probes need"
    return f", which cases with tick_hz={image.tick_hz} need" if image.variant else ""


def _leave_out(image: Image) -> str:
    if image.variant and not image.product:
        return f'leave these cases out (--suite "… and not tick_hz={image.tick_hz}")'
    return "choose boards with --board"


Outcome = Literal["identical", "different", "only-in-head", "only-in-base"]


@dataclass(frozen=True)
class TargetComparison:
    """What became of an image, whose name is ``target``.

    ``differing`` names what is flashed in another way: files of the head, and those that only base has.
    """

    target: str
    outcome: Outcome
    differing: tuple[str, ...] = ()


def compare_bundles(head: Path, base: Path) -> tuple[TargetComparison, ...]:
    """Compare what two bundles flash, image by image, after checking both.

    ELF files do not count, as they are not flashed; where an image lies and how its flash is addressed does.

    Raises:
        ConfigError: one of them is no bundle, or is damaged.
        RigError: the disk does not give a file.
    """
    heads, bases = verify_bundle(head), verify_bundle(base)
    head_folders, base_folders = _folders(head, heads), _folders(base, bases)
    found = []
    for target in sorted(heads.keys() | bases.keys()):
        if target not in bases:
            found.append(TargetComparison(target, "only-in-head"))
        elif target not in heads:
            found.append(TargetComparison(target, "only-in-base"))
        else:
            parts = (
                _flashed(head_folders[target], heads[target]),
                _flashed(base_folders[target], bases[target]),
            )
            differing = tuple(sorted(_differing(*parts)))
            outcome: Outcome = "different" if differing else "identical"
            found.append(TargetComparison(target, outcome, differing))
    return tuple(found)


def description_of(build_dir: Path) -> AppDescription | None:
    """Return what a build's app image says of itself, None where it says nothing.

    Raises ConfigError where the build has no app image.
    """
    try:
        return read_app_description(app_image(build_dir))
    except ImageError:
        return None


def same_flash(first: Path, second: Path) -> bool:
    """Return whether two builds put the same bytes on a board, whatever their files are called.

    Raises ConfigError where one of them is no build, OSError where the disk does not give a file.
    """
    return _content(first) == _content(second)


def _content(build_dir: Path) -> tuple[list[tuple[int, str]], str]:
    files = [(int(offset, 0), file_sha256(build_dir / name)) for offset, name in flash_files(build_dir)]
    return files, str(flasher_args(build_dir).get("write_flash_args"))


def _folders(bundle: Path, digests: dict[str, Digests]) -> dict[str, Path]:
    return bundle_folders(bundle) or dict.fromkeys(digests, bundle)


def _flashed(folder: Path, digests: Digests) -> dict[str, tuple[int, str]]:
    """Return what is flashed: where and which content; and the settings that esptool writes into headers."""
    files = {name: (int(offset, 0), digests.files[name]) for offset, name in flash_files(folder)}
    settings = str(flasher_args(folder).get("write_flash_args"))
    return {**files, "write_flash_args": (0, settings)}


def _differing(head: dict[str, tuple[int, str]], base: dict[str, tuple[int, str]]) -> list[str]:
    return [name for name in head.keys() | base.keys() if head.get(name) != base.get(name)]
