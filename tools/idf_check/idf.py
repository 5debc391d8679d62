# SPDX-License-Identifier: Apache-2.0
"""The real ESP-IDF that the environment names: its version, and the project configured by it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.git import try_git
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.build import FIRMWARE_DIR
from hil.boards.firmware.revision import run_step

WANTED = "v5.5"
SOURCE = ". $IDF_PATH/export.sh, or run it in the container espressif/idf:v5.5.4."


@dataclass(frozen=True)
class Idf:
    """An ESP-IDF. ``commit`` is empty where it is no git checkout."""

    path: Path
    version: str
    commit: str

    def __str__(self) -> str:
        return self.version + (f", commit {self.commit}" if self.commit else ", no git checkout")

    @property
    def is_wanted(self) -> bool:
        return self.version.startswith(WANTED) and self.version[len(WANTED) : len(WANTED) + 1] in {
            "",
            ".",
            "-",
        }


@dataclass(frozen=True)
class Command:
    """How the build compiles one source."""

    source: Path
    folder: Path
    argv: tuple[str, ...]


def find(environment: Mapping[str, str] = os.environ) -> Idf:
    """Return the ESP-IDF that ``IDF_PATH`` names. Raises ConfigError where there is none."""
    named = environment.get("IDF_PATH", "")
    if not named:
        raise ConfigError("idf-check needs a real ESP-IDF, and IDF_PATH is not set.", next_step=SOURCE)
    path = Path(named)
    if not (path / "tools" / "cmake" / "project.cmake").is_file():
        raise ConfigError("IDF_PATH names a folder that is no ESP-IDF.", next_step=SOURCE)
    commit = _git(path, "rev-parse", "HEAD") if (path / ".git").exists() else ""
    described = _git(path, "describe", "--tags", "--always", "--dirty") if commit else ""
    file = path / "version.txt"
    written = file.read_text(encoding="utf-8").strip() if file.is_file() else "of no known version"
    return Idf(path, described or written, commit)


def foreign_submodules(path: Path) -> list[str]:
    """Return the submodules that are there, but not as a checkout of the commit that ESP-IDF names."""
    found = []
    for line in _git(path, "submodule", "status").splitlines():
        name = line[1:].split()[1]
        if line[0] != " " and (path / name).is_dir() and any((path / name).iterdir()):
            found.append(name)
    return found


def require_tools() -> None:
    """Raise ConfigError where the environment of this ESP-IDF is not set up."""
    if not shutil.which("idf.py"):
        raise ConfigError("IDF_PATH is set, but idf.py is not on PATH.", next_step=SOURCE)


def project_version() -> str:
    """Return the commit of this project, with ``-dirty`` where files differ from it."""
    return _git(PROJECT_ROOT, "describe", "--always", "--dirty", "--abbrev=12") or "no git checkout"


def configure(chip: str, folder: Path, *, tools: Path | None) -> list[Command]:
    """Let ESP-IDF configure the project for ``chip``; return how it compiles the project's own sources.

    ``tools`` comes first on PATH. Raises ConfigError.
    """
    path = f"{tools}{os.pathsep}{os.environ['PATH']}" if tools else os.environ["PATH"]
    sdkconfig = folder / "sdkconfig"
    sdkconfig.unlink(missing_ok=True)  # an old one would hide a changed default
    argv = ("idf.py", "-B", str(folder), f"-DIDF_TARGET={chip}", f"-DSDKCONFIG={sdkconfig}", "reconfigure")
    run_step(argv, cwd=FIRMWARE_DIR, env={"PATH": path}, log=folder.with_suffix(".log"), fresh=True)
    return own_commands(folder, FIRMWARE_DIR)


def own_commands(folder: Path, sources: Path) -> list[Command]:
    """Return a build folder's commands for what lies below ``sources``, and for its own table of benches."""
    entries = json.loads((folder / "compile_commands.json").read_text(encoding="utf-8"))
    generated = folder / "esp-idf" / "benches"
    found = []
    for entry in entries:
        source = Path(entry["file"])
        if source.is_relative_to(sources) or source.is_relative_to(generated):
            found.append(Command(source, Path(entry["directory"]), tuple(shlex.split(entry["command"]))))
    if not found:
        raise ConfigError(f"{folder.name}: the build compiles none of the project's own sources.")
    return found


def _git(folder: Path, *words: str) -> str:
    done = try_git(folder, *words)
    return "" if done.returncode else done.stdout.decode().rstrip()
