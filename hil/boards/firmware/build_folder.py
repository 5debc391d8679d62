# SPDX-License-Identifier: Apache-2.0
"""A build folder in the form that ESP-IDF gives it, whatever built it.

The images of one target: hil's firmware, with the kernel configured in one way or another, and the product
of a team, which is measured from outside.

An image is named after its target; one that is not as by default adds how: ``esp32``, ``esp32+tick100``,
``esp32+product``.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError
from hil.base.flash_command import LABEL
from hil.base.idf_project import is_idf_project
from hil.base.paths import PROJECT_FILE
from hil.base.reading import IMAGE_MOST_BYTES, SETTINGS_MOST_BYTES, read_at_most

DEFAULT_TICK_HZ = 1000
TICKS_HZ = (DEFAULT_TICK_HZ, 100)  # each but the default has its overlay, firmware/sdkconfig.tick<Hz>

_TICK = "+tick"
_PRODUCT = "+product"


@dataclass(frozen=True)
class Image:
    """What is built and flashed: a target and how often a second its kernel ticks.

    ``product``: a team's own firmware, as its sources have it, tick included.
    """

    target: str
    tick_hz: int = DEFAULT_TICK_HZ
    product: bool = False

    def __str__(self) -> str:
        return self.target + self.variant

    @property
    def variant(self) -> str:
        """What the name adds to the target's; "" where the image is as by default."""
        if self.product:
            return _PRODUCT
        return "" if self.tick_hz == DEFAULT_TICK_HZ else f"{_TICK}{self.tick_hz}"

    @property
    def overlay(self) -> str:
        """The file in firmware/ whose values come after the defaults'; "" where there is none."""
        return f"sdkconfig.{self.variant[1:]}" if self.variant and not self.product else ""

    @property
    def options(self) -> str:
        """The options of `hil build` that make this image."""
        if self.product:
            return f"-C FIRMWARE --target {self.target}"
        return f"--target {self.target}" + (f" --tick-hz {self.tick_hz}" if self.variant else "")


def check_tick_hz(tick_hz: int) -> int:
    """Return ``tick_hz``. Raises ConfigError where no image has such a tick."""
    if tick_hz not in TICKS_HZ:
        raise ConfigError(
            f"there is no image with a tick of {tick_hz} Hz.",
            next_step=f"use one of: {', '.join(map(str, TICKS_HZ))}.",
        )
    return tick_hz


def target_of(name: str) -> str:
    """Return the target of the image that has this name."""
    return name.partition("+")[0]


FLASHER_ARGS = "flasher_args.json"
SDKCONFIG = "config/sdkconfig.json"
PROJECT_DESCRIPTION = "project_description.json"

_DIGEST_BYTES = 32
_HEADER_BYTES = 24
_HASH_APPENDED_OFFSET = 23  # esp_image_header_t.hash_appended, ESP-IDF "App Image Format"
_AGAIN = "build it again: hil build --target TARGET, or a project: hil build -C DIR, or idf.py build."


_FLASH_FILES = "flash_files"
# what is read of flasher_args.json; any of them may be missing
_TYPES = {"flash_files": dict, "app": dict, "extra_esptool_args": dict, "write_flash_args": list}


def flasher_args(build_dir: Path) -> dict[str, Any]:
    """Return what ESP-IDF's build says about flashing; what is read here has its type.

    Raises:
        ConfigError: there is no build, or the file is none of ESP-IDF's; names the key.
    """
    path = build_dir / FLASHER_ARGS
    try:
        content = json.loads(read_at_most(path, SETTINGS_MOST_BYTES), object_pairs_hook=_with_no_twins)
    except OSError as error:
        raise ConfigError(
            f"{build_dir} is not a firmware build: no {path.name}.", next_step=_AGAIN
        ) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.", next_step=_AGAIN) from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} is not a JSON object.", next_step=_AGAIN)
    for key, kind in _TYPES.items():
        if not isinstance(content.get(key, kind()), kind):
            what = "table" if kind is dict else "list"
            raise ConfigError(f"{path}: {key} is {content[key]!r:.40}; expected {what}.", next_step=_AGAIN)
    return content


def _with_no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the table. Raises ValueError where two files have the same offset: JSON takes the last."""
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key.startswith("0x") and table.get(key, value) != value:
            raise ValueError(f"{table[key]} and {value} have the same offset, {key}; correct one of them")
        table[key] = value
    return table


def flash_files(build_dir: Path) -> list[tuple[str, str]]:
    """Return (flash offset, file name) of what is flashed, by offset.

    Raises:
        ConfigError: no build there, one of the files is missing, or it lies outside of the build and of its
            project.
    """
    named = flasher_args(build_dir).get(_FLASH_FILES, {})
    if not named:
        raise ConfigError(
            f"{build_dir / FLASHER_ARGS} names no file to flash ({_FLASH_FILES}).", next_step=_AGAIN
        )
    try:
        pairs = ((offset, str(name)) for offset, name in named.items())
        files = sorted(pairs, key=lambda pair: int(pair[0], 0))
    except ValueError as error:
        raise ConfigError(
            f"{build_dir / FLASHER_ARGS}: flash_files does not map offsets to files: {error}.",
            next_step=_AGAIN,
        ) from error
    for _, name in files:
        if not _is_file_of(build_dir, _FLASH_FILES, name):
            raise ConfigError(f"{build_dir} lacks {name}, which its {FLASHER_ARGS} names.", next_step=_AGAIN)
    return files


def _is_file_of(build_dir: Path, key: str, name: str) -> bool:
    """Return whether a file is there; none is looked at that neither the build nor its project has.

    Raises ConfigError: the file is outside.
    """
    if not is_inside(name) and not (key == _FLASH_FILES and _is_of_project(build_dir, name)):
        raise ConfigError(
            f"{build_dir / FLASHER_ARGS} names {name}, which is not a path inside the build ({key}).",
            next_step=f"copy it into {build_dir} and name it from there; flash_files may also name files "
            "of the repository or project around the build, but no hidden ones.",
        )
    try:
        return (build_dir / name).is_file()
    except OSError:  # such as a name that is too long
        return False


def _is_of_project(build_dir: Path, name: str) -> bool:
    """Return whether a file beside a build belongs to the repository, else the project, around the build.

    ESP-IDF names a project's own images from the build folder: ``../assets/storage.bin``. Nothing hidden is
    taken, for a build may come from elsewhere.
    """
    parents = build_dir.resolve().parents
    repositories = (parent for parent in parents if (parent / ".git").exists())
    projects = (parent for parent in parents if (parent / PROJECT_FILE).is_file() or is_idf_project(parent))
    root = next(repositories, None) or next(projects, None)
    path = (build_dir / name).resolve()
    if root is None or not path.is_relative_to(root):
        return False
    return not any(part.startswith(".") for part in path.relative_to(root).parts)


def is_inside(name: str) -> bool:
    """Return whether a file name in a build is relative and stays below the build's folder."""
    path = Path(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def app_image(build_dir: Path) -> Path:
    """Return the app image that ``flasher_args.json`` names. Raises ConfigError where it is missing."""
    name = flasher_args(build_dir).get("app", {}).get("file", "")
    if not name or not _is_file_of(build_dir, "app.file", str(name)):
        raise ConfigError(f"{build_dir} holds no app image ({name or 'not named'}).", next_step=_AGAIN)
    return build_dir / str(name)


def image_sha256(build_dir: Path) -> str:
    """Return the SHA-256 that the app image in ``build_dir`` carries, after checking that it is right.

    It is the last of an image, before the signature of one that is signed.

    Raises:
        ConfigError: no build there, an image without a digest, or a damaged one.
    """
    image = app_image(build_dir)
    content = read_at_most(image, IMAGE_MOST_BYTES)
    if len(content) < 2 * _DIGEST_BYTES or not content[_HASH_APPENDED_OFFSET]:
        raise ConfigError(
            f"{image} has no SHA-256, so its origin cannot be proven.",
            next_step="append the digest: esptool elf2image without --dont-append-digest.",
        )
    end = _image_end(content)
    body, digest = content[: end - _DIGEST_BYTES], content[end - _DIGEST_BYTES : end]
    if hashlib.sha256(body).digest() != digest:
        raise ConfigError(f"{image} is damaged: its SHA-256 does not match its content.", next_step=_AGAIN)
    return digest.hex()


def _image_end(content: bytes) -> int:
    """Return where an app image ends: after its digest, whatever follows. Of what is none, where it ends."""
    at = _HEADER_BYTES
    for _ in range(content[1]):
        at += 8 + int.from_bytes(content[at + 4 : at + 8], "little")
    end = (at | 15) + 1 + _DIGEST_BYTES
    return end if _HEADER_BYTES < end <= len(content) else len(content)


def build_target(build_dir: Path) -> str:
    """Return the chip that a build is for. Raises ConfigError."""
    return str(flasher_args(build_dir).get("extra_esptool_args", {}).get("chip", ""))


def console_baud(build_dir: Path) -> int | None:
    """Return the rate at which a build's console talks; None where its sdkconfig does not say.

    Raises:
        ConfigError: the file is there and is none of ESP-IDF's.
    """
    found = _sdkconfig(build_dir).get("ESP_CONSOLE_UART_BAUDRATE")
    return found if isinstance(found, int) else None


def option(build_dir: Path, name: str) -> object:
    """Return a build's Kconfig option, None where its sdkconfig does not say. Raises ConfigError."""
    return _sdkconfig(build_dir).get(name)


def build_tick_hz(build_dir: Path) -> int:
    """Return how often a second the kernel of a build ticks; the default where its sdkconfig does not say.

    Raises:
        ConfigError: the file is there and is none of ESP-IDF's.
    """
    hz = _sdkconfig(build_dir).get("FREERTOS_HZ", DEFAULT_TICK_HZ)
    if not isinstance(hz, int):
        raise ConfigError(f"{build_dir / SDKCONFIG}: FREERTOS_HZ is {hz!r}.", next_step=_AGAIN)
    return hz


# Options by which an image burns eFuses of the chip that runs it, each with what cannot be undone then.
_BURNING = {
    "SECURE_BOOT": "secure boot burns the digest of its key, and the chip runs no other image ever after",
    "SECURE_FLASH_ENCRYPTION_MODE_RELEASE": "flash encryption in release mode closes the chip to esptool",
    "SECURE_FLASH_ENCRYPTION_MODE_DEVELOPMENT": "flash encryption burns a key and one of few counts",
    "SECURE_DISABLE_ROM_DL_MODE": "the chip is never flashed over its serial port again",
    "SECURE_ENABLE_SECURE_ROM_DL_MODE": "its boot loader answers only a part of what esptool asks, for ever",
    "BOOTLOADER_APP_ANTI_ROLLBACK": "anti-rollback burns a version, and the chip runs no older image again",
    "NVS_SEC_KEY_PROTECT_USING_HMAC": "the key of an encrypted NVS is burnt into a block of its own",
}
# of these, what is done once: a chip whose eFuses hold the keys runs such an image and burns nothing any more
_DONE_ONCE = {
    "SECURE_BOOT",
    "SECURE_FLASH_ENCRYPTION_MODE_DEVELOPMENT",
    "SECURE_ENABLE_SECURE_ROM_DL_MODE",
    "NVS_SEC_KEY_PROTECT_USING_HMAC",
}
_SIMULATED = "EFUSE_VIRTUAL"  # eFuses in memory: nothing is burnt


def check_burns_nothing(build_dir: Path, *, has_keys: bool = False) -> None:
    """Raise ConfigError where a build's image would burn eFuses of the board that it is flashed to.

    ``has_keys``: those for development are burned there already.
    """
    options = _sdkconfig(build_dir)
    found = [name for name in _BURNING if options.get(name) is True and not (has_keys and name in _DONE_ONCE)]
    if found and options.get(_SIMULATED) is not True:
        names = ", ".join(f"CONFIG_{name}" for name in found)
        if has_keys:
            raise ConfigError(
                f"{build_dir} is built with CONFIG_{found[0]}: {_BURNING[found[0]]}. hil never "
                "flashes it, not even by the product's own command.",
                next_step=f"build it for development: without {names}.",
            )
        raise ConfigError(
            f"{build_dir} is built with CONFIG_{found[0]}: {_BURNING[found[0]]}. hil flashes it to no board.",
            next_step=f"build it without {names}, or with CONFIG_EFUSE_VIRTUAL, to measure it; to sign "
            "without burning eFuses, use CONFIG_SECURE_SIGNED_APPS_NO_SECURE_BOOT. A board "
            "whose eFuses hold development keys already can be flashed by the product's own "
            f"command: [flash] in hil.toml, and the rack file's label {LABEL}.",
        )


def _sdkconfig(build_dir: Path) -> dict[str, Any]:
    """Return the options of a build, none where it has no such file. Raises ConfigError."""
    path = build_dir / SDKCONFIG
    if not path.is_file():
        return {}
    try:
        content = json.loads(read_at_most(path, SETTINGS_MOST_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.", next_step=_AGAIN) from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} is not a JSON object.", next_step=_AGAIN)
    return content
