# SPDX-License-Identifier: Apache-2.0
"""What an ESP-IDF project's CMakeLists.txt files say, as CMake itself reads them.

``cmake -P`` runs them against commands that record what they are called with
(firmware/host/product/read.cmake).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError, RefusedSourcesError
from hil.base.paths import TOOL_FIRMWARE

CMAKE_TIMEOUT_S = 120
READER = TOOL_FIRMWARE / "host" / "product"
_IS_IDF = re.compile(r"^[^#\n]*/tools/cmake/project\.cmake", re.MULTILINE)
_PLACE = re.compile(r"(?:CMake Error at |^  )(\S[^\n]*?:\d+) \((\w+)\)", re.MULTILINE)
_CAUSE = re.compile(r"^CMake Error[^\n]*:\n?\s*(.+?)\n(?:\n\n|Call Stack|\s*\Z)", re.DOTALL | re.MULTILINE)
Words = tuple[str, ...]


@dataclass(frozen=True)
class Component:
    """A component's folder, and what its idf_component_register says, by key in lower case."""

    folder: Path
    says: dict[str, Words]

    @property
    def requires(self) -> frozenset[str]:
        return frozenset((*self.says.get("requires", ()), *self.says.get("priv_requires", ())))


@dataclass(frozen=True)
class CMakeProject:
    """``says`` are values, by key; ``left_out`` has no effect."""

    says: dict[str, Words]
    components: tuple[Component, ...]
    left_out: tuple[str, ...]

    @property
    def name(self) -> str:
        return "".join(self.says.get("name", ()))


def is_idf_project(folder: Path) -> bool:
    """Return whether a folder's CMakeLists.txt names ESP-IDF's project.cmake."""
    try:
        return bool(_IS_IDF.search((folder / "CMakeLists.txt").read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return False


def read_cmake(
    folder: Path, *, chip: str = "esp32", components: Sequence[Path] = (), options: Path | None = None
) -> CMakeProject:
    """Run a project's CMakeLists.txt, or that of ``components`` alone; ``options`` sets CONFIG_….

    Raises:
        ConfigError: there is no cmake, or it does not end.
        RefusedSourcesError: no project, or CMake refuses the files (its sentence, with file and line).
    """
    if not (folder / "CMakeLists.txt").is_file():
        raise no_project(folder, "a CMakeLists.txt")
    if not shutil.which("cmake"):
        raise ConfigError(
            f"reading {folder / 'CMakeLists.txt'} needs cmake, which is not installed.",
            next_step="apt-get install cmake; or name the product in hil.toml: product = …",
        )
    with tempfile.TemporaryDirectory() as work:
        record = Path(work) / "record"
        settings = {
            "FOLDER": folder.resolve(), "CHIP": chip, "RECORD": record, "WORK": work,
            "COMPONENTS": ";".join(map(str, components)), "OPTIONS": options or "",
        }  # fmt: skip
        command = ["cmake", *(f"-DHIL_{name}={value}" for name, value in settings.items())]
        try:
            done = subprocess.run(
                [*command, "-P", str(READER / "read.cmake")], cwd=components[0] if components else folder,
                capture_output=True, text=True, errors="replace", timeout=CMAKE_TIMEOUT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise ConfigError(
                f"cmake did not end within {CMAKE_TIMEOUT_S} s on {folder / 'CMakeLists.txt'}."
            ) from None
        if done.returncode:
            raise RefusedSourcesError(cmake_error(done.stderr, folder.resolve()))
        found = read_record(record)
        if not components and "name" not in found.says:
            raise no_project(folder, "project()")
        return found


def no_project(folder: Path, missing: str) -> RefusedSourcesError:
    return RefusedSourcesError(
        f"{folder} is not an ESP-IDF project: it lacks {missing}.",
        next_step="name the folder of a project, as for idf.py -C.",
    )


def cmake_error(text: str, folder: Path) -> str:
    """Return CMake's first error: the place in the project's files, the command, the cause."""
    found = _CAUSE.search(text)
    cause = " ".join(found[1].split()) if found else text.strip()[:400]
    places = [place for place in _PLACE.finditer(text) if "/product/idf.cmake" not in place[1]]
    of_project = [place for place in places if "/product/read.cmake" not in place[1]]
    where = f"{_absolute(of_project[0][1], folder)} ({of_project[0][2]})" if of_project else str(folder)
    return f"{where}: {cause.rstrip('.')}."


def _absolute(place: str, folder: Path) -> str:
    return place if place.startswith("/") else str(folder / place)


def read_record(record: Path) -> CMakeProject:
    """Return the project that read.cmake, or a build, recorded."""
    says: dict[str, Words] = {}
    components: dict[str, Component] = {}
    left_out: list[str] = []
    current = says
    lines = record.read_text(encoding="utf-8").splitlines() if record.is_file() else []
    for key, words in (item for line in lines for item in json.loads(line).items()):
        if key in ("component", "register"):
            folder = "".join(words)  # "" is that of a component which was taken for a project
            current = components.setdefault(folder, Component(Path(folder), {})).says
        elif key == "left_out":
            left_out.append(f"{words[0]} in {words[1]}")
        else:
            current[key] = (*current.get(key, ()), *words)
    return CMakeProject(says, tuple(components.values()), tuple(left_out))
