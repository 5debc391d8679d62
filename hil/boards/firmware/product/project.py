# SPDX-License-Identifier: Apache-2.0
"""An ESP-IDF project on disk: its components, its options, and what the host build is told of it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

from hil.base.errors import ConfigError
from hil.base.idf_project import CMakeFilesError, CMakeProject, Component, read_cmake
from hil.boards.firmware.failure import RefusedSourcesError
from hil.boards.firmware.product.kconfig import Table, assigned, read_options

_CONDITION = re.compile(r"(idf_version|target)\s*(not in|in|==|!=|<=|>=|<|>|~|\^)\s*(.+)")
_VERSIONS = re.compile(r"\s*(==|!=|<=|>=|<|>|~|\^)?\s*v?(\d+(?:\.\d+)*|\*)\s*")
GIT_TIMEOUT_S = 30
# components of the registry that firmware/host has in their place
OF_HOST = ("mdns", "espressif/mdns", "espressif/mqtt", "espressif/cjson")
OF_IMAGE = ("PARTITION_TABLE_CUSTOM", "ESPTOOLPY_")  # options that no source of the host asks
IDF_VERSION = (5, 5, 4)  # whose API the host has
MANAGED = "managed_components"  # where idf.py puts what it fetched: namespace__name
_DEFINE = re.compile(r"#\s*define (CONFIG_\w+) (.+)")
_NOT_SET = re.compile(r"^/\* (CONFIG_\w+) is not set \*/$", re.MULTILINE)


@dataclass(frozen=True)
class Project:
    """``components`` are folders, each after those that it requires; ``from_registry`` are not on disk.

    ``cmake`` is what CMake says of its files.
    """

    folder: Path
    name: str
    components: tuple[Path, ...]
    from_registry: tuple[str, ...]
    cmake: CMakeProject

    def settings(self, chip: str) -> list[Path]:
        """Return the files of options that idf.py reads, in its order."""
        defaults = [Path(name) for name in self.cmake.says.get("defaults", ())]
        beside = [named for path in defaults for named in (path, path.with_name(f"{path.name}.{chip}"))]
        return [path for path in (*beside, Path(self.cmake.says["sdkconfig"][0])) if path.is_file()]


def _read(folder: Path, chip: str, components: tuple[Path, ...] = ()) -> CMakeProject:
    try:
        return read_cmake(folder, chip=chip, components=components)
    except CMakeFilesError as error:
        raise RefusedSourcesError(error.sentence, next_step=error.next_step) from error


def project_name(folder: Path, *, chip: str = "esp32") -> str:
    """Return what the project in ``folder`` calls itself. Raises RefusedSourcesError, as _project()."""
    return _project(folder, chip)[0]


def _project(folder: Path, chip: str) -> tuple[str, CMakeProject]:
    """Return a project's name and files. Raises RefusedSourcesError: there is no project or no component."""
    found = _read(folder, chip) if (folder / "CMakeLists.txt").is_file() else None
    if not found or not found.name or not found.components:
        missing = "main/CMakeLists.txt" if found and found.name else "a CMakeLists.txt with project()"
        raise RefusedSourcesError(
            f"{folder} is no ESP-IDF project: it lacks {missing}.",
            next_step="name the folder of a project, as for idf.py -C.",
        )
    return found.name, found


def project_version(project: Project, options: Mapping[str, str], *, of_git: str | None = None) -> str:
    """Return the version that a build of a project has; ``of_git`` is for one that is no working tree of
    git's: what it would say there.

    The order is ESP-IDF's: CONFIG_APP_PROJECT_VER, PROJECT_VER, version.txt, VERSION in project(), git's
    word, 1.
    """
    if options.get("APP_PROJECT_VER_FROM_CONFIG") == "y":
        return options.get("APP_PROJECT_VER", "1")
    if "project_ver" in project.cmake.says:
        return ";".join(project.cmake.says["project_ver"])
    file = project.folder / "version.txt"
    if lines := file.read_text(encoding="utf-8").splitlines() if file.is_file() else []:
        return ";".join(line for line in lines if line)  # CMake's list of them
    if version := project.cmake.says["version"]:
        return version[0]
    return (described(project.folder) if of_git is None else of_git) or "1"


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
        RefusedSourcesError: no project, what CMake refuses, or a component's path that is not there.
        ConfigError: a component in IDF_PATH, which is not set; no cmake.
    """
    name, cmake = _project(folder, chip)
    components = {_short(one.folder): one for one in reversed(cmake.components)}
    wanted = cmake.says["only"] or [_short(one.folder) for one in cmake.components]
    left = [key for key in wanted if key in components and key not in cmake.says["exclude"]]
    registry: list[str] = []
    built: dict[str, Component] = {}
    while left:
        key = left.pop(0)
        if key in built:
            continue
        built[key] = component = components[key]
        for other in _dependencies(component.folder, folder, chip, registry):
            if _short(other) not in components:
                components[_short(other)] = _read(folder, chip, (other,)).components[0]
            left.append(_short(other))
        left += [short for word in component.requires if (short := word.rpartition("__")[2]) in components]
    folders = tuple(component.folder for component in _required_first(built))
    return Project(folder.resolve(), name, folders, tuple(dict.fromkeys(registry)), cmake)


def _short(folder: Path) -> str:
    """Return a component's name without its namespace of the registry."""
    return folder.name.rpartition("__")[2]


def _required_first(components: Mapping[str, Component]) -> Iterator[Component]:
    """Yield components, each after those that it requires; main, which requires all, is the last."""
    done: set[str] = set()

    def visit(key: str) -> Iterator[Component]:
        if key in done or key not in components:
            return
        done.add(key)
        for word in sorted(components[key].requires):
            yield from visit(word.rpartition("__")[2])
        yield components[key]

    for key in sorted(components, key=lambda key: key == "main"):
        yield from visit(key)


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
    if not (found / "CMakeLists.txt").is_file():
        raise RefusedSourcesError(f"{where} names a component in {found}, which has no CMakeLists.txt.")
    return found


@dataclass(frozen=True)
class Configuration:
    """``values`` of all options; ``of_project`` those that firmware/host knows nothing of, and ``changed``
    those that it has with another value. ``texts`` are names of strings."""

    values: Mapping[str, str]
    of_project: Mapping[str, str]
    changed: Mapping[str, str]
    texts: frozenset[str]
    given: frozenset[str]


def configure(
    project: Project,
    host: Path,
    sdkconfig: Path | None = None,
    *,
    chip: str = "esp32",
    say: Callable[[str], object] = print,
) -> Configuration:
    """Return a project's options for ``chip`` on ``host`` (firmware/host), those of ``sdkconfig`` last."""
    known = host_values(host / "idf" / "include" / "sdkconfig.h")
    of_chip = host_values(host / "idf" / "target" / chip / "sdkconfig_target.h")
    table = Table(
        of_chip,
        {**known, **assigned(host / "product" / "sdkconfig.defaults")},
        host / "product" / "Kconfig",
    )
    files = [*project.settings(chip), *([sdkconfig] if sdkconfig else [])]
    options = read_options(project.components, files, table, project=project.folder, chip=chip, say=say)
    plain = {name: value.strip('"') for name, value in known.items()}
    listed = {
        name: options.values.get(name, "n")
        for name in options.given | (options.values.keys() - known.keys() - of_chip.keys())
    }
    changed = {
        name: value for name, value in listed.items()
        if plain.get(name, value) != value and not name.startswith(OF_IMAGE)
    }  # fmt: skip
    of_project = {
        name: value for name, value in listed.items() if name not in known or name.startswith(OF_IMAGE)
    }
    return Configuration(options.values, of_project, changed, options.texts, options.given)


def host_values(header: Path) -> dict[str, str]:
    text = header.read_text(encoding="utf-8")
    found = {**dict.fromkeys(_NOT_SET.findall(text), "n"), **dict(_DEFINE.findall(text))}
    return {name.removeprefix("CONFIG_"): "y" if value == "1" else value for name, value in found.items()}


def sdkconfig_header(values: Mapping[str, str], texts: frozenset[str]) -> str:
    """Return a header, to be included before all else, that sets options on top of the host's sdkconfig.h."""
    lines = ["#pragma once", '#include "sdkconfig.h"']
    for name, value in sorted(values.items()):
        quoted = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        text = quoted if name in texts else {"y": "1", "n": ""}.get(value, value)
        lines += [f"#undef CONFIG_{name}", *([f"#define CONFIG_{name} {text}"] if text else [])]
    return "\n".join(lines) + "\n"
