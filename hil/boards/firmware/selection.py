"""Which build is measured: one of a bundle, whose digests are right, or a build folder of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hil.base.errors import ConfigError
from hil.boards.firmware.build_folder import FLASHER_ARGS, build_target, build_tick_hz, image_sha256
from hil.boards.firmware.bundle import verify
from hil.boards.firmware.digests import DAMAGED, DIGESTS, Digests
from hil.boards.firmware.variant import Image


@dataclass(frozen=True)
class Firmware:
    """A build and the SHA-256 of its app image; ``origin`` is what its bundle says of where it comes from."""

    build_dir: Path
    sha256: str
    origin: Mapping[str, object] = field(default_factory=dict)


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
        add = f"add it (hil build {image.options} --bundle {path})"
        raise ConfigError(
            f"the bundle {path} holds firmware for {', '.join(folders)}, and none for {image}"
            f"{_needed_by(image)}.",
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
            f"{bundle} is no firmware bundle: no folder in it holds {DIGESTS}.",
            next_step="make one: hil build --target TARGET --bundle DIR.",
        )
    extra = sorted({path.name for path in bundle.iterdir()} - set(folders))
    if extra:
        raise ConfigError(
            f"{bundle} holds what is no part of the bundle: {', '.join(extra)}.",
            next_step=f"remove it; a part of the bundle is a folder with {DIGESTS}.",
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
    return Firmware(folder, digests.image_sha256, digests.origin)


def _own_build(build_dir: Path, image: Image) -> Firmware:
    chip = Image(image.target.rpartition("-")[2], image.tick_hz)
    found = Image(build_target(build_dir) or "no chip", build_tick_hz(build_dir))
    if found != chip:
        raise _other_image(build_dir, str(found), chip)
    return Firmware(build_dir, image_sha256(build_dir))


def _other_image(folder: Path, found: str, wanted: Image) -> ConfigError:
    return ConfigError(
        f"{folder} is a build for {found}, not for {wanted}{_needed_by(wanted)}.",
        next_step=f"name a build for it, or {_leave_out(wanted)}.",
    )


def _needed_by(image: Image) -> str:
    return f", which cases with tick_hz={image.tick_hz} need" if image.variant else ""


def _leave_out(image: Image) -> str:
    if image.variant:
        return f'leave these cases out (--suite "… and not tick_hz={image.tick_hz}")'
    return "choose boards with --board"
