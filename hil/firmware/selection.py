"""Which build is measured: one of a bundle, whose digests are right, or a build folder of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hil.errors import ConfigError
from hil.firmware.build_folder import FLASHER_ARGS, build_target, image_sha256
from hil.firmware.bundle import verify
from hil.firmware.digests import DAMAGED, DIGESTS, Digests


@dataclass(frozen=True)
class Firmware:
    """A build and the SHA-256 of its app image; ``origin`` is what its bundle says of where it comes from."""

    build_dir: Path
    sha256: str
    origin: Mapping[str, object] = field(default_factory=dict)


def find_firmware(path: Path, target: str) -> Firmware:
    """Return the build for ``target`` in ``path``, a bundle or a single build folder, after checking it.

    Raises:
        ConfigError: no build there, none for this target, or one that is damaged.
        RigError: the disk does not give it.
    """
    path = path.resolve()
    if (path / DIGESTS).is_file():
        return _verified(path, target)
    folders = bundle_folders(path)
    if not folders or (path / FLASHER_ARGS).is_file():
        return _own_build(path, target)
    if target not in folders:
        raise ConfigError(
            f"the bundle {path} holds firmware for {', '.join(folders)}, and none for {target}.",
            next_step=f"add it (hil build --target {target} --bundle {path}), or choose boards with --board.",
        )
    return _verified(folders[target], target)


def bundle_folders(bundle: Path) -> dict[str, Path]:
    """Return the folders of a bundle by the target that names them; empty where it is no bundle."""
    found = sorted(bundle.glob(f"*/{DIGESTS}"))
    return {path.parent.name: path.parent for path in found if not path.parent.name.startswith(".")}


def verify_bundle(bundle: Path) -> dict[str, Digests]:
    """Check every file of a bundle, or of one of its folders; return the digests by target.

    Raises:
        ConfigError: no bundle there, an altered, missing or extra file, or a folder of another name.
        RigError: the disk does not give a file.
    """
    if (bundle / DIGESTS).is_file():
        digests = verify(bundle)
        return {digests.target: digests}
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
    return {target: _verify_folder(folder, target) for target, folder in folders.items()}


def _verify_folder(folder: Path, target: str) -> Digests:
    digests = verify(folder)
    if digests.target != target:
        raise ConfigError(
            f"{folder} holds a build for {digests.target}, not for {target}.", next_step=DAMAGED
        )
    return digests


def _verified(folder: Path, target: str) -> Firmware:
    digests = verify(folder)
    if digests.target != target:
        raise _other_target(folder, digests.target, target)
    return Firmware(folder, digests.image_sha256, digests.origin)


def _own_build(build_dir: Path, target: str) -> Firmware:
    chip = target.rpartition("-")[2]
    if build_target(build_dir) != chip:
        raise _other_target(build_dir, build_target(build_dir), chip)
    return Firmware(build_dir, image_sha256(build_dir))


def _other_target(folder: Path, found: str, wanted: str) -> ConfigError:
    return ConfigError(
        f"{folder} is a build for {found or 'no chip'}, not for {wanted}.",
        next_step="name a build for it, or choose boards with --board.",
    )
