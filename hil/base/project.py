# SPDX-License-Identifier: Apache-2.0
"""``hil.toml``: what marks a folder as a project of a team's, and where in it the firmware is.

schema = 1
product = "sensor-node"        # whose figures these are; as [product] name = "…" too. Without: project(…)'s
strict = true                  # on a virtual board what fails on a chip fails; without: a line says it

[firmware]
folder = "firmware"            # the ESP-IDF project, below the folder of this file
targets = ["esp32", "esp32c3"]

[given]                        # how the firmware learns where the rack is: hil.base.given
nvs = {"wifi.ssid" = "{ssid}"}

[flash]                        # of boards that no other flasher may write: hil.base.flash_command
command = "idf.py -B {build} -p {port} encrypted-flash"

[keep]
captures_days = 14             # how long captures, payloads and keys of runs are kept; without: for good
history = "../boot-values"     # where the history is, from the folder of this file; without: out/history
"""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hil.base.chips import CHIPS
from hil.base.errors import ConfigError
from hil.base.flash_command import FlashCommand, read_flash_command
from hil.base.given import Given, read_given
from hil.base.idf_project import is_idf_project, read_cmake
from hil.base.paths import PROJECT_FILE, PROJECT_ROOT
from hil.base.reading import SETTINGS_MOST_BYTES, read_at_most
from hil.base.yamlvalue import did_you_mean
from hil.model import LONGEST_PRODUCT, PRODUCT_PATTERN

SCHEMA = 1
_KEYS = {"schema", "product", "strict", "firmware", "given", "flash", "keep"}
_FIRMWARE_KEYS = {"folder", "targets"}
_PRODUCT_KEYS = {"name"}
_KEEP_KEYS = {"captures_days", "history"}


@dataclass(frozen=True)
class Keep:
    """``captures_days`` of captures, payloads and keys, None for good; ``history`` as a folder."""

    captures_days: int | None = None
    history: Path | None = None


@dataclass(frozen=True)
class Project:
    """A team's project: its folder, that of its firmware, and the chips it is for.

    ``named`` is the product that hil.toml names, None where it names none; see product_of(). ``strict`` is
    whether what fails on a chip fails on a virtual board too, None where hil.toml does not say.
    """

    root: Path
    firmware: Path
    targets: tuple[str, ...]
    named: str | None = None
    keep: Keep = Keep()
    given: Given = field(default_factory=Given)
    flash: FlashCommand | None = None
    strict: bool | None = None


def check_product(name: str, where: str) -> str:
    """Return the name of a product; "" is that of figures without one. Raises ConfigError."""
    if name and not (re.fullmatch(PRODUCT_PATTERN, name) and len(name) <= LONGEST_PRODUCT):
        raise ConfigError(
            f"{where}: {name!r} is not a valid product name.",
            next_step=f"use a-z, 0-9 and single hyphens between them, {LONGEST_PRODUCT} characters at "
            'most, as in product = "sensor-node".',
        )
    return name


def product_of(project: Project) -> str:
    """Return the product of a project: the name in hil.toml, else the name in its CMakeLists.txt.

    Of that, what no name may hold becomes a -: ``Sensor_Node`` is sensor-node. Raises ConfigError where
    nothing is left of it, and as read_cmake() does.
    """
    if project.named is not None:
        return project.named
    said = read_cmake(project.firmware).name
    name = re.sub(r"[^a-z0-9]+", "-", said.lower()).strip("-")
    if not name or len(name) > LONGEST_PRODUCT:
        raise ConfigError(
            f"{project.firmware / 'CMakeLists.txt'}: project({said}) is not usable as a product name.",
            next_step=f'set it in {project.root / PROJECT_FILE}: product = "sensor-node", '
            f"{LONGEST_PRODUCT} characters at most.",
        )
    return name


@functools.cache
def product_here() -> str:
    """Return the product of the project that hil works for; "" where no hil.toml marks one.

    Raises ConfigError as read_project() and product_of() do.
    """
    return product_of(read_project(PROJECT_ROOT)) if (PROJECT_ROOT / PROJECT_FILE).is_file() else ""


@functools.cache
def keep_here() -> Keep:
    """Return what the project keeps, and where; the defaults where no hil.toml marks one. Raises as above."""
    return read_project(PROJECT_ROOT).keep if (PROJECT_ROOT / PROJECT_FILE).is_file() else Keep()


@functools.cache
def given_here() -> Given:
    """Return how the firmware learns where the rack is; nothing without hil.toml. Raises as above."""
    return read_project(PROJECT_ROOT).given if (PROJECT_ROOT / PROJECT_FILE).is_file() else Given()


@functools.cache
def flash_here() -> FlashCommand | None:
    """Return the product's own way of flashing; None without one. Raises as above."""
    return read_project(PROJECT_ROOT).flash if (PROJECT_ROOT / PROJECT_FILE).is_file() else None


@functools.cache
def strict_here() -> bool | None:
    """Return the project's ``strict``; None without hil.toml, where the program decides. Raises as above."""
    return read_project(PROJECT_ROOT).strict if (PROJECT_ROOT / PROJECT_FILE).is_file() else None


def read_project(root: Path) -> Project:
    """Read ``root``/hil.toml.

    Raises:
        ConfigError: it is no TOML, a key is unknown, missing or of another type, or the firmware's folder is
            no ESP-IDF project.
    """
    path = root / PROJECT_FILE
    try:
        content = tomllib.loads(read_at_most(path, SETTINGS_MOST_BYTES).decode())
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path}: {error}.", next_step="correct it, or delete it and run hil init."
        ) from error
    firmware = _table(path, content)
    folder, targets = firmware.get("folder"), firmware.get("targets")
    if (
        not isinstance(folder, str)
        or not isinstance(targets, list)
        or not all(isinstance(t, str) for t in targets)
    ):
        raise ConfigError(
            f"{path}: firmware.folder is {folder!r} and firmware.targets is {targets!r}; expected "
            "a text and a list of texts.",
            next_step='write, for example, folder = "." and targets = ["esp32"].',
        )
    for target in targets:
        if target not in CHIPS:
            raise ConfigError(
                f"{path}: firmware.targets has the unknown chip {target!r}{did_you_mean(target, CHIPS)}",
                next_step=f"chips: {', '.join(CHIPS)}.",
            )
    if not is_idf_project(root / folder):
        raise ConfigError(
            f"{path}: firmware.folder is {folder!r}, but {root / folder} is not an ESP-IDF project.",
            next_step="name the folder where idf.py builds.",
        )
    return Project(
        root,
        (root / folder).resolve(),
        tuple(targets),
        _product(path, content),
        _keep(path, content),
        read_given(content.get("given"), str(path)),
        read_flash_command(content.get("flash"), str(path)),
        _strict(path, content),
    )


def _table(path: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Return the table of the firmware. Raises ConfigError for an unknown key or another schema."""
    firmware = content.get("firmware", {})
    if content.get("schema") != SCHEMA or not isinstance(firmware, dict):
        raise ConfigError(
            f"{path}: schema is {content.get('schema')!r}; expected {SCHEMA}, and a table [firmware].",
            next_step="write schema = 1, or use the hil that wrote the file.",
        )
    known = {"firmware": _FIRMWARE_KEYS, "product": _PRODUCT_KEYS, "keep": _KEEP_KEYS}
    inner = {name: content[name] for name in known if isinstance(content.get(name), dict)}
    unknown = sorted(
        [
            *(content.keys() - _KEYS),
            *(f"{n}.{key}" for n, own in inner.items() for key in own.keys() - known[n]),
        ]
    )
    if unknown:
        names = [f"{name}.{key}" for name, keys in known.items() for key in sorted(keys)]
        raise ConfigError(
            f"{path}: unknown key {unknown[0]!r}.",
            next_step=f"known keys: schema, product, strict, given, flash, {', '.join(names)}.",
        )
    return firmware


def _product(path: Path, content: dict[str, Any]) -> str | None:
    """Return the product's name, which is a text of the file or of its table; None where it says none."""
    said = content.get("product")
    name = said.get("name") if isinstance(said, dict) else said
    if name is not None and not isinstance(name, str):
        raise ConfigError(
            f"{path}: product is {name!r}; expected a text.",
            next_step='write, for example, product = "sensor-node".',
        )
    return None if name is None else check_product(name, f"{path}: product")


def _strict(path: Path, content: dict[str, Any]) -> bool | None:
    strict = content.get("strict")
    if strict is not None and not isinstance(strict, bool):
        raise ConfigError(
            f"{path}: strict is {strict!r}; expected true or false.",
            next_step="strict = true fails where a chip would; strict = false prints it on the console.",
        )
    return strict


def _keep(path: Path, content: dict[str, Any]) -> Keep:
    said = content.get("keep", {})
    keep: dict[str, Any] = said if isinstance(said, dict) else {"captures_days": {"[keep]": said}}
    days, history = keep.get("captures_days"), keep.get("history", "")
    if ("captures_days" in keep and (type(days) is not int or days < 1)) or not isinstance(history, str):
        raise ConfigError(
            f"{path}: keep.captures_days is {days!r} and keep.history is {history!r}; expected a "
            "number of days and a folder.",
            next_step='write below [keep], for example, captures_days = 14 and history = "../boot-values".',
        )
    return Keep(days, (path.parent / Path(history).expanduser()).resolve() if history else None)
