# SPDX-License-Identifier: Apache-2.0
"""An ESP-IDF project on disk: its components, those that it depends on, and its version."""

from __future__ import annotations

import operator
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from hil.base.errors import ConfigError, RefusedSourcesError
from hil.base.idf_project import CMakeProject, Component, no_project, read_cmake

GIT_TIMEOUT_S = 30
# components of the registry that firmware/host has in their place
OF_HOST = ("idf", "mdns", "espressif/mdns", "espressif/mqtt", "espressif/cjson")
IDF_VERSION = (5, 5, 4)  # whose API the host has
_CONDITION = re.compile(r"(idf_version|target)\s*(not in|in|==|!=|<=|>=|<|>|~|\^)\s*(.+)")
_VERSIONS = re.compile(r"\s*(==|!=|<=|>=|<|>|~|\^)?\s*v?(\d+(?:\.\d+)*)\s*")
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True)
class IdfProject:
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

    def version(self, options: Mapping[str, str], of_git: str | None = None) -> str:
        """Return the version as ESP-IDF's build does; ``of_git`` stands for git's word of the folder."""
        if "APP_PROJECT_VER_FROM_CONFIG" in options:
            return options["APP_PROJECT_VER"].strip('"')
        said = ";".join(self.cmake.says["project_ver"])
        return said or (described(self.folder) if of_git is None else of_git) or "1"


def described(folder: Path, commit: str = "") -> str:
    """Return git's word for the working tree in ``folder``, or for a commit: tag, distance, digits; "" where
    git knows nothing of it. ESP-IDF asks for the same."""
    asked = [commit] if commit else ["--dirty"]
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "describe", "--always", "--tags", *asked],
            capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def find_project(folder: Path, *, chip: str = "esp32") -> IdfProject:
    """Return the project in ``folder`` as it is for ``chip``, with what was fetched of the registry.

    Raises:
        RefusedSourcesError: no project, what CMake refuses, or a component's path that is not there.
        ConfigError: a component in IDF_PATH, which is not set; no cmake.
    """
    cmake = read_cmake(folder, chip=chip)
    if not cmake.components:
        raise no_project(folder, "main/CMakeLists.txt")
    components = {_short(one.folder.name): one for one in reversed(cmake.components)}
    left = [*(cmake.says["only"] or components)]
    registry: list[str] = []
    built: dict[str, Component] = {}
    while left:
        key = left.pop(0)
        if key in built or key not in components or key in cmake.says["exclude"]:
            continue
        built[key] = component = components[key]
        for other in _dependencies(component.folder, folder, chip, registry):
            if _short(other.name) not in components:
                (components[_short(other.name)],) = read_cmake(
                    folder, chip=chip, components=(other,)
                ).components
            left.append(_short(other.name))
        left += map(_short, component.requires)
    folders = tuple(component.folder for component in _required_first(built))
    return IdfProject(folder.resolve(), cmake.name, folders, tuple(dict.fromkeys(registry)), cmake)


def _short(name: str) -> str:
    """Return a component's name without its namespace of the registry."""
    return name.rpartition("__")[2]


def _required_first(components: Mapping[str, Component]) -> Iterator[Component]:
    """Yield components, each after those that it requires; main, which requires all, is the last."""
    done: set[str] = set()

    def visit(key: str) -> Iterator[Component]:
        if key in done or key not in components:
            return
        done.add(key)
        for word in sorted(components[key].requires):
            yield from visit(_short(word))
        yield components[key]

    for key in sorted(components, key=lambda key: key == "main"):
        yield from visit(key)


def _dependencies(component: Path, project: Path, chip: str, registry: list[str]) -> Iterator[Path]:
    """Yield the folders of what a component's manifest names; names that are not here go to ``registry``."""
    manifest = component / "idf_component.yml"
    entries = (YAML(typ="safe").load(manifest) if manifest.is_file() else None) or {}
    for name, entry in (entries.get("dependencies") or {}).items():
        details = entry if isinstance(entry, Mapping) else {}
        if name in OF_HOST or not _is_needed(details, chip):
            continue
        if path := details.get("override_path") or details.get("path"):
            yield _place(component, str(path), manifest)
            continue
        space, _, short = str(name).rpartition("/")
        places = ("components", short), ("managed_components", f"{space or 'espressif'}__{short}")
        here = [project.joinpath(*place) for place in places]
        fetched = next((path for path in here if (path / "CMakeLists.txt").is_file()), None)
        if fetched:
            yield fetched
        else:
            registry.append(str(name))


def _is_needed(details: Mapping[str, object], chip: str) -> bool:
    """Whether a dependency is of this chip and ESP-IDF: all its ``rules`` hold, and one of ``matches``."""
    rules, matches = (
        [_holds(str(rule["if"]), chip) for rule in listed if "if" in rule] if isinstance(listed, list) else []
        for listed in (details.get("rules"), details.get("matches"))
    )
    return all(rules) and (not matches or any(matches))


def _holds(condition: str, chip: str) -> bool:
    """Whether a condition of idf_component.yml holds; one that asks for something else is taken to hold."""
    if "||" in condition:
        return any(_holds(part, chip) for part in condition.split("||"))
    if "&&" in condition:
        return all(_holds(part, chip) for part in condition.split("&&"))
    found = _CONDITION.fullmatch(condition.strip().strip("()"))
    if not found:
        return True
    subject, sign, value = found.groups()
    if subject == "target":
        return (chip in re.findall(r"\w+", value)) != (sign in ("not in", "!="))
    return all(
        _version_holds(*one.groups()) for one in _VERSIONS.finditer(f"{sign}{value}".replace(",", " "))
    )


def _version_holds(sign: str | None, text: str) -> bool:
    wanted = tuple(map(int, text.split(".")))
    if sign in ("~", "^"):
        fixed = min(2, len(wanted)) if sign == "~" else 1
        return wanted <= IDF_VERSION and wanted[:fixed] == IDF_VERSION[:fixed]
    own = IDF_VERSION[: len(wanted)] if sign in (None, "==", "!=") else IDF_VERSION
    return _COMPARED[sign or "=="](own, wanted)


def _place(base: Path, path: str, where: Path) -> Path:
    if "IDF_PATH" in path and "IDF_PATH" not in os.environ:
        raise ConfigError(
            f"{where} takes a component from IDF_PATH, which is not set.",
            next_step="export IDF_PATH=…, the folder of ESP-IDF; hil reads only the component from it.",
        )
    found = (base / os.path.expandvars(path)).resolve()
    if not (found / "CMakeLists.txt").is_file():
        raise RefusedSourcesError(f"{where} names a component in {found}, which has no CMakeLists.txt.")
    return found
