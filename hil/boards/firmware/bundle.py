# SPDX-License-Identifier: Apache-2.0
"""Firmware bundles: builds that can be moved to another machine, a folder for each target, with digests.

``digests.json``: what a build in a bundle is, and the SHA-256 of each of its files.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, RigError
from hil.base.flock import wait_for_lock
from hil.base.reading import SETTINGS_MOST_BYTES, read_at_most
from hil.base.schema import check_schema
from hil.boards.firmware.app_image import ImageError, read_app_description
from hil.boards.firmware.build_folder import (
    FLASHER_ARGS,
    PROJECT_DESCRIPTION,
    SDKCONFIG,
    Image,
    app_image,
    build_tick_hz,
    flash_files,
    image_sha256,
    is_inside,
)
from hil.boards.firmware.revision import SourceState
from hil.boards.firmware.ruler import RULER_LOG
from hil.model import Ruler
from hil.store.codec import build, decode
from hil.store.files import disk_error

SCHEMA = 1
DIGESTS = "digests.json"
_BESIDE = "beside-the-build"  # a bundle's folder for what a build flashes from outside of itself
NO_IDF = "host"  # idf_version of a build for virtual boards, which the host's compiler made


@dataclass(frozen=True)
class Digests:
    """The content of digests.json (docs/reference/schema/digests.schema.json).

    ``image_sha256`` is the digest that the app image carries and the board reports of what it runs; ``files``
    maps the name of each file in the folder but digests.json to the SHA-256 of its content. ``commit`` is the
    product's; ``ruler`` is None where no other was asked for. ``product`` is what a team's own firmware calls
    itself, "" where it is hil's.
    """

    target: str
    commit: str
    dirty: bool
    idf_version: str
    image_sha256: str
    files: Mapping[str, str]
    tick_hz: int
    ruler: Ruler | None = None
    product: str = ""

    def to_json(self) -> dict[str, Any]:
        content = {"schema": SCHEMA, **dataclasses.asdict(self), "files": dict(sorted(self.files.items()))}
        return {key: value for key, value in content.items() if value or key not in ("product", "ruler")}

    @property
    def image(self) -> Image:
        """What was built; its name is the folder's."""
        return Image(self.target, product=True) if self.product else Image(self.target, self.tick_hz)

    @property
    def origin(self) -> dict[str, Any]:
        """What a run notes of the build besides its image's digest."""
        facts = ("commit", "dirty", "idf_version", "ruler")
        return {name: getattr(self, name) for name in facts}


def write_digests(folder: Path, digests: Digests) -> None:
    """Write digests.json in ``folder``. Raises OSError."""
    text = json.dumps(digests.to_json(), indent=2, ensure_ascii=False) + "\n"
    (folder / DIGESTS).write_text(text, encoding="utf-8")


def read_digests(folder: Path) -> Digests:
    """Return what digests.json in ``folder`` says. Raises ConfigError where it is missing or no such file."""
    path = folder / DIGESTS
    try:
        stored = decode(read_at_most(path, SETTINGS_MOST_BYTES))
        if isinstance(stored, dict):
            check_schema(stored.pop("schema", None), SCHEMA)
        found = build(Digests, stored)
    except FileNotFoundError as error:
        raise ConfigError(
            f"{folder} holds no {DIGESTS}, so its files cannot be verified.",
            next_step="make a bundle: hil build --target TARGET --bundle DIR.",
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {error}.", next_step=DAMAGED) from error
    if outside := [name for name in found.files if not is_inside(name)]:
        raise ConfigError(
            f"{path}: files names {outside[0]!r}, which is outside the bundle.", next_step=DAMAGED
        )
    return found


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


DAMAGED = (
    "fetch the bundle again, or build it again; it was damaged or altered after the build, for which neither "
    "the firmware nor the rack is at fault."
)


VIRTUAL_PREFIX = "virtual-"
LOCK_TIMEOUT_S = 120.0  # what is written is a few MB


def write_bundle(
    build_dir: Path, image: Image, bundle: Path, state: SourceState, *, say: Callable[[str], object] = print
) -> Path:
    """Copy what flashing and pytest-embedded need to the image's folder in ``bundle``; return that folder.

    One process writes to a bundle at a time; ``say`` tells that another one is waited for.

    Raises:
        ConfigError: ``build_dir`` holds no image to flash, or the folder is there and is no bundle's.
        RigError: the disk does not take it, or another process keeps the bundle.
    """
    try:
        bundle.mkdir(parents=True, exist_ok=True)
        with _locked(bundle, say):
            return _write(build_dir, image, bundle, state)
    except OSError as error:
        raise disk_error(
            f"could not write the bundle {bundle / str(image)}", error, f"the build {build_dir}"
        ) from error


@contextmanager
def _locked(bundle: Path, say: Callable[[str], object]) -> Iterator[None]:
    """Lock the folder itself, as a file for it would be no part of the bundle."""
    descriptor = os.open(bundle, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def waiting() -> None:
        say(f"Waiting for another build that writes to {bundle}")

    try:
        if not wait_for_lock(descriptor, timeout_s=LOCK_TIMEOUT_S, waiting=waiting):
            raise RigError(
                f"another process has been writing to {bundle} for {LOCK_TIMEOUT_S:g} s.",
                next_step=f"fuser -v {bundle}",
            )
        yield
    finally:
        os.close(descriptor)


def _write(build_dir: Path, image: Image, bundle: Path, state: SourceState) -> Path:
    folder = bundle / str(image)
    if folder.exists() and not (folder / DIGESTS).is_file():
        raise ConfigError(
            f"{folder} exists and is not part of a bundle, so hil does not replace it.",
            next_step="name another folder with --bundle, or remove this one.",
        )
    unfinished = bundle / f".{image}.unfinished"
    try:
        _fill(unfinished, build_dir, image, state)
        shutil.rmtree(folder, ignore_errors=True)
        unfinished.replace(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _fill(folder: Path, build_dir: Path, image: Image, state: SourceState) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    moved = _moved(build_dir)
    for name in _needed(build_dir):
        copy = folder / moved.get(name, name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(build_dir / name, copy)
    _rename_flashed(folder, moved)
    digests = Digests(
        target=image.target,
        tick_hz=build_tick_hz(folder) if image.product else image.tick_hz,
        product=state.product,
        commit=state.commit,
        dirty=state.dirty,
        idf_version=NO_IDF if image.target.startswith(VIRTUAL_PREFIX) else idf_version(app_image(folder)),
        image_sha256=image_sha256(folder),
        files={name: file_sha256(folder / name) for name in _names(folder)},
        ruler=state.ruler,
    )
    write_digests(folder, digests)


def _moved(build_dir: Path) -> dict[str, str]:
    """Return the names in a bundle of the files that a build flashes from beside itself."""
    outside = ((offset, name) for offset, name in flash_files(build_dir) if not is_inside(name))
    return {name: f"{_BESIDE}/{offset}-{Path(name).name}" for offset, name in outside}


def _rename_flashed(folder: Path, moved: Mapping[str, str]) -> None:
    """Have flasher_args.json name the files as the bundle does."""
    if not moved:
        return
    content = json.loads((folder / FLASHER_ARGS).read_bytes())
    files = content["flash_files"]
    content["flash_files"] = {offset: moved.get(name, name) for offset, name in files.items()}
    for part in content.values():
        if isinstance(part, dict) and part.get("file") in moved:
            part["file"] = moved[part["file"]]
    (folder / FLASHER_ARGS).write_text(json.dumps(content, indent=4) + "\n", encoding="utf-8")


def _needed(build_dir: Path) -> list[str]:
    names = {FLASHER_ARGS, *(name for _, name in flash_files(build_dir))}
    names |= {path.name for path in build_dir.glob("*.elf")}  # addresses of a panic become lines with it
    maps = {path.name for path in build_dir.glob("*.map")}  # what each byte is
    names |= maps
    described = (PROJECT_DESCRIPTION,) if maps else ()
    names |= {name for name in (SDKCONFIG, *described, RULER_LOG) if (build_dir / name).is_file()}
    return sorted(names)


def idf_version(image: Path) -> str:
    """Return the ESP-IDF version that an image says it was built with."""
    try:
        description = read_app_description(image)
    except ImageError as error:
        raise ConfigError(f"{image}: {error}.", next_step="build it again.") from error
    return description.idf_version if description else ""


def _names(folder: Path) -> list[str]:
    """Return the files below ``folder``, digests.json left out; links are named, not followed."""
    paths = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted({path.relative_to(folder).as_posix() for path in paths} - {DIGESTS})


def verify(folder: Path) -> Digests:
    """Compare a target's folder with its digests, file by file; return them.

    Raises:
        ConfigError: an altered, missing or extra file, all named; or an image of another digest.
        RigError: the disk does not give a file.
    """
    digests = read_digests(folder)
    try:
        problems = _problems(folder, digests.files)
    except OSError as error:
        raise disk_error(f"could not read the bundle {folder}", error, "nothing was flashed") from error
    if problems:
        raise ConfigError(
            f"{folder} was changed after the build: {'; '.join(problems)}.",
            next_step=DAMAGED,
        )
    _check_images(folder, digests)
    return digests


def _check_images(folder: Path, digests: Digests) -> None:
    """Refuse a flasher_args.json that names files without a digest, and another image than is promised."""
    flashed = [name for _, name in flash_files(folder)]
    app = app_image(folder).relative_to(folder).as_posix()
    unlisted = sorted({app, *flashed} - set(digests.files))
    if unlisted or app not in flashed:
        raise ConfigError(
            f"{folder / FLASHER_ARGS} names {', '.join(unlisted) or app}, which {DIGESTS} does not list.",
            next_step=DAMAGED,
        )
    carried = image_sha256(folder)
    if carried != digests.image_sha256:
        raise ConfigError(
            f"{folder}: the image has the SHA-256 {carried[:12]}, but {DIGESTS} lists "
            f"{digests.image_sha256[:12]}.",
            next_step=DAMAGED,
        )


def _problems(folder: Path, files: Mapping[str, str]) -> list[str]:
    present = _names(folder)
    problems = [f"{name} is missing" for name in sorted(set(files) - set(present))]
    problems += [f"{name} is extra" for name in present if name not in files]
    for name in present:
        if (folder / name).is_symlink():
            problems.append(f"{name} is a link")
        elif name in files and file_sha256(folder / name) != files[name]:
            problems.append(f"{name} differs from its digest")
    return problems
