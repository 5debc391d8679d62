# SPDX-License-Identifier: Apache-2.0
"""An ESP-IDF project on disk: its components, its options, and what the host build is told of it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

from hil.base.errors import ConfigError
from hil.boards.firmware.failure import RefusedSourcesError
from hil.boards.firmware.product.kconfig import Option, evaluate, read_options, read_settings

_EXTRA_DIRS = re.compile(r"set\(\s*EXTRA_COMPONENT_DIRS\s+([^)]*)\)")
_PROJECT = re.compile(r"^\s*project\(\s*([^\s)]+)", re.MULTILINE)
_CONDITION = re.compile(r"(idf_version|target)\s*(not in|in|==|!=|<=|>=|<|>|~|\^)\s*(.+)")
_VERSIONS = re.compile(r"\s*(==|!=|<=|>=|<|>|~|\^)?\s*v?(\d+(?:\.\d+)*|\*)\s*")
_SET = re.compile(r'^\s*set\(\s*(\w+)\s+"?([^")\s]*)"?\s*(?:CACHE[^)]*)?\)', re.MULTILINE)
_VERSION = re.compile(r"^\s*project\([^)]*\bVERSION\s+\"?([\d.]+)", re.MULTILINE)
GIT_TIMEOUT_S = 30
OF_HOST = ("mdns", "espressif/mdns")  # components of the registry that firmware/host has in their place
IDF_VERSION = (5, 5, 4)  # whose API the host has
MANAGED = "managed_components"  # where idf.py puts what it fetched: namespace__name
_DEFINE = re.compile(r"#\s*define (CONFIG_\w+) (.+)")
_NOT_SET = re.compile(r"^/\* (CONFIG_\w+) is not set \*/$", re.MULTILINE)


@dataclass(frozen=True)
class Project:
    """``components`` are folders, main first; ``from_registry`` are dependencies that are not on disk."""

    folder: Path
    name: str
    components: tuple[Path, ...]
    from_registry: tuple[str, ...]

    @property
    def partitions_csv(self) -> Path | None:
        found = self.folder / "partitions.csv"
        return found if found.is_file() else None


def project_name(folder: Path) -> str:
    """Return what the project in ``folder`` calls itself.

    Raises:
        RefusedSourcesError: it has no CMakeLists.txt of a project, or no main.
    """
    cmake = folder / "CMakeLists.txt"
    text = cmake.read_text(encoding="utf-8") if cmake.is_file() else ""
    name = _PROJECT.search(text)
    if not name or not (folder / "main" / "CMakeLists.txt").is_file():
        missing = "main/CMakeLists.txt" if name else "a CMakeLists.txt with project()"
        raise RefusedSourcesError(
            f"{folder} is no ESP-IDF project: it lacks {missing}.",
            next_step="name the folder of a project, as for idf.py -C.",
        )
    return name[1]


def project_version(
    folder: Path, options: Mapping[str, str], say: Callable[[str], object], *, of_git: str | None = None
) -> str:
    """Return the version that a build of the project in ``folder`` has; ``of_git`` is for one that is no
    working tree of git's: what it would say there.

    The order is ESP-IDF's: CONFIG_APP_PROJECT_VER, PROJECT_VER, version.txt, VERSION in project(), git's
    word, 1. A PROJECT_VER that only CMake could work out is said, and is 1.
    """
    if options.get("APP_PROJECT_VER_FROM_CONFIG") == "y":
        return options.get("APP_PROJECT_VER", "1")
    cmake = folder / "CMakeLists.txt"
    text = re.sub(r"#.*", "", cmake.read_text(encoding="utf-8"))
    before = text[: found.start()] if (found := _PROJECT.search(text)) else text
    if re.search(r"\bPROJECT_VER\b", before):
        if set_there := _value(before, "PROJECT_VER"):
            return set_there
        say(f"{cmake}: only CMake could say what PROJECT_VER is; here the version is 1")
        return "1"
    file = folder / "version.txt"
    if lines := file.read_text(encoding="utf-8").splitlines() if file.is_file() else []:
        return ";".join(line for line in lines if line)  # CMake's list of them
    if named := _VERSION.search(text):
        return named[1]
    return (described(folder) if of_git is None else of_git) or "1"


def _value(text: str, name: str) -> str:
    """Return what the last ``set()`` of a variable says, "" where that is not known."""
    values: dict[str, str] = {}
    for found in _SET.finditer(text):
        values[found[1]] = re.sub(r"\$\{(\w+)\}", lambda use: values.get(use[1], use[0]), found[2])
    value = values.get(name, "")
    return "" if "$" in value else value


def described(folder: Path, commit: str = "") -> str:
    """Return git's word for the working tree in ``folder``, or for a commit: tag, distance, digits; "" where
    git knows nothing of it. ESP-IDF asks for the same."""
    asked = [commit] if commit else ["--dirty"]
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "describe", "--always", "--tags", *asked],
            capture_output=True,
            text=True,
            timeout=GIT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def find_project(folder: Path, *, chip: str = "esp32") -> Project:
    """Return the project in ``folder`` as it is for ``chip``, with what was fetched of the registry.

    Raises:
        RefusedSourcesError: as project_name() does, or a component's path that is not there.
        ConfigError: a component in IDF_PATH, which is not set.
    """
    name = project_name(folder)
    text = (folder / "CMakeLists.txt").read_text(encoding="utf-8")
    main = folder / "main"
    folders = [main, *_below(folder / "components"), *_extra(folder, text)]
    registry: list[str] = []
    for component in folders:  # grows by what they depend on
        for other in _dependencies(component, folder, chip, registry):
            if other not in folders:
                folders.append(other)
    return Project(folder.resolve(), name, tuple(folders), tuple(dict.fromkeys(registry)))


def _below(folder: Path) -> list[Path]:
    return sorted(cmake.parent for cmake in folder.glob("*/CMakeLists.txt"))


def _extra(folder: Path, text: str) -> list[Path]:
    found: list[Path] = []
    for entry in " ".join(_EXTRA_DIRS.findall(text)).replace('"', "").split():
        path = _place(
            folder, entry.replace("${CMAKE_CURRENT_LIST_DIR}", str(folder)), folder / "CMakeLists.txt"
        )
        found += [path] if (path / "CMakeLists.txt").is_file() else _below(path)
    return found


def _dependencies(component: Path, project: Path, chip: str, registry: list[str]) -> list[Path]:
    manifest = component / "idf_component.yml"
    if not manifest.is_file():
        return []
    found = []
    entries = (YAML(typ="safe").load(manifest) or {}).get("dependencies") or {}
    for name, entry in entries.items():
        details = entry if isinstance(entry, Mapping) else {}
        if name == "idf" or name in OF_HOST or _for_others(details, chip):
            continue
        path = details.get("override_path") or details.get("path")
        if path:
            found.append(_place(component, str(path), manifest))
        elif (fetched := _fetched(project, str(name))) is not None:
            found.append(fetched)
        else:
            registry.append(str(name))
    return found


def _fetched(project: Path, name: str) -> Path | None:
    """Return where a component of the registry lies; one of the project's own of its name goes first."""
    space, _, short = name.rpartition("/")
    places = (project / "components" / short, project / MANAGED / f"{space or 'espressif'}__{short}")
    return next((path for path in places if (path / "CMakeLists.txt").is_file()), None)


def _for_others(details: Mapping[str, object], chip: str) -> bool:
    """Whether a dependency is of another chip or ESP-IDF: all its ``rules`` hold, and one of ``matches``."""
    rules, matches = (_conditions(details.get(key)) for key in ("rules", "matches"))
    return not (
        all(_holds(one, chip) for one in rules) and (not matches or any(_holds(one, chip) for one in matches))
    )


def _conditions(rules: object) -> list[str]:
    return [str(rule["if"]) for rule in rules if "if" in rule] if isinstance(rules, list) else []


def _holds(condition: str, chip: str) -> bool:
    """Whether a condition of idf_component.yml holds; one that asks for something else is taken to hold."""
    if "||" in condition:
        return any(_holds(part, chip) for part in condition.split("||"))
    if "&&" in condition:
        return all(_holds(part, chip) for part in condition.split("&&"))
    found = _CONDITION.fullmatch(condition.strip().strip("()"))
    if not found:
        return True
    subject, operator, value = found.groups()
    if subject == "target":
        listed = re.findall(r"\w+", value)
        return (chip in listed) != (operator in ("not in", "!="))
    specs = _VERSIONS.finditer(f"{operator}{value}".replace(",", " "))
    return all(_version_holds(one[1] or "==", one[2]) for one in specs)


def _version_holds(operator: str, text: str) -> bool:
    if text == "*":
        return True
    wanted = tuple(map(int, text.split(".")))
    own = IDF_VERSION[: len(wanted)] if operator in ("==", "!=") else IDF_VERSION
    match operator:
        case "~":
            return wanted <= IDF_VERSION and IDF_VERSION[:2] == wanted[:2]
        case "^":
            return wanted <= IDF_VERSION and IDF_VERSION[0] == wanted[0]
        case "==":
            return own == wanted
        case "!=":
            return own != wanted
        case "<":
            return own < wanted
        case ">":
            return own > wanted
        case "<=":
            return own <= wanted
    return own >= wanted


def _place(base: Path, path: str, where: Path) -> Path:
    if "IDF_PATH" in path and "IDF_PATH" not in os.environ:
        raise ConfigError(
            f"{where} takes a component from IDF_PATH, which is not set.",
            next_step="export IDF_PATH=… to an ESP-IDF's folder; only the component is read from there.",
        )
    found = (base / re.sub(r"\$\{?(?:ENV\{)?IDF_PATH\}?\}?", os.environ.get("IDF_PATH", ""), path)).resolve()
    if not found.is_dir():
        raise RefusedSourcesError(f"{where} names a component in {found}, which is not there.")
    return found


@dataclass(frozen=True)
class Configuration:
    """``values`` of all options; ``of_project`` those that firmware/host knows nothing of, and ``changed``
    those that it has with another value."""

    values: Mapping[str, str]
    of_project: Mapping[str, str]
    changed: Mapping[str, str]
    options: Mapping[str, Option]


def configure(
    project: Project, host: Path, sdkconfig: Path | None = None, *, chip: str = "esp32"
) -> Configuration:
    """Return a project's options for ``chip`` on ``host`` (firmware/host), those of ``sdkconfig`` last."""
    known = _host_values(host / "idf" / "include" / "sdkconfig.h")
    of_chip = _host_values(host / "idf" / "target" / chip / "sdkconfig_target.h")
    defaults = read_settings((host / "product" / "sdkconfig.defaults").read_text(encoding="utf-8"))
    given = dict(defaults)
    own = [
        project.folder / name for name in ("sdkconfig.defaults", f"sdkconfig.defaults.{chip}", "sdkconfig")
    ]
    for path in (*own, *([sdkconfig] if sdkconfig else ())):
        if path.is_file():
            given.update(read_settings(path.read_text(encoding="utf-8")))
    files = [folder / name for folder in project.components for name in ("Kconfig", "Kconfig.projbuild")]
    options = read_options([path for path in files if path.is_file()])
    values = evaluate(options, {**known, **of_chip}, given)
    mine = {option.name: option for option in options if not option.members}
    listed = {**given, **{name: values[name] for name in mine}}
    changed = {name: value for name, value in listed.items() if known.get(name, value) != value}
    fresh = {name: value for name, value in listed.items() if name not in known}
    return Configuration(values, fresh, changed, mine)


def _host_values(header: Path) -> dict[str, str]:
    text = header.read_text(encoding="utf-8")
    found = {**dict.fromkeys(_NOT_SET.findall(text), "n"), **dict(_DEFINE.findall(text))}
    return {
        name.removeprefix("CONFIG_"): "y" if value == "1" else value.strip('"')
        for name, value in found.items()
    }


def sdkconfig_header(values: Mapping[str, str], options: Mapping[str, Option]) -> str:
    """Return a header, to be included before all else, that sets options on top of the host's sdkconfig.h."""
    lines = ["#pragma once", '#include "sdkconfig.h"']
    for name, value in sorted(values.items()):
        lines += [f"#undef CONFIG_{name}"]
        text = _defined_as(value, options.get(name))
        lines += [f"#define CONFIG_{name} {text}"] if text else []
    return "\n".join(lines) + "\n"


def _defined_as(value: str, option: Option | None) -> str:
    if value in ("y", "n") and not (option and option.kind == "string"):
        return "1" if value == "y" else ""
    number = re.fullmatch(r"-?\d+|0x[0-9a-fA-F]+", value)
    return value if number and not (option and option.kind == "string") else f'"{value}"'
