# SPDX-License-Identifier: Apache-2.0
"""Build a product for a chip: idf.py does it, in a build folder and with an sdkconfig of ours.

The project's own ``build/`` and ``sdkconfig`` stay as they are, for whoever works in it.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from hil.base.errors import ConfigError
from hil.boards.firmware.build import Say, locked
from hil.boards.firmware.build_folder import build_target, image_sha256
from hil.boards.firmware.product.kconfig import assigned
from hil.boards.firmware.product.project import Project, find_project
from hil.boards.firmware.revision import run_step
from hil.store.files import short_path

_CACHE = "CMakeCache.txt"


def build_for_chip(
    folder: Path,
    target: str,
    *,
    say: Say,
    sdkconfig: Path | None,
    build_root: Path,
    publish: Callable[[Path], Path] | None,
) -> Path:
    """Build the project in ``folder`` where anything changed; as build_product().

    Raises:
        RefusedSourcesError: no project.
        ConfigError: ESP-IDF is missing, a build that failed (its first error, its log), or one whose image is
            of another chip or carries no digest.
    """
    project = find_project(folder, chip=target)
    name = project.name
    if not shutil.which("idf.py"):
        raise ConfigError(
            f"building {name} for {target} needs ESP-IDF, and idf.py is not on PATH.",
            next_step=". $IDF_PATH/export.sh, or name a build: --firmware DIR.",
        )
    folder = folder.resolve()
    build_dir = build_root / f"{name}-{target}"
    with locked(build_root / f"{name}-{target}.lock", f"{name} for {target}", say):
        _forget_other_sources(build_dir, folder)
        say(f"Building {name} for {target} in {short_path(build_dir)} with idf.py")
        options = _sdkconfig(project, target, sdkconfig, build_root / f"{name}-{target}")
        run_step(
            (
                "idf.py", "-B", str(build_dir.absolute()), f"-DIDF_TARGET={target}",
                f"-DSDKCONFIG={options.absolute()}", "build",
            ),
            log=build_root / f"{name}-{target}.log",
            fresh=True,
            cwd=folder,
        )  # fmt: skip
        _check(build_dir, target)
        return publish(build_dir) if publish else build_dir


def _check(build_dir: Path, target: str) -> None:
    found = build_target(build_dir)
    if found != target:
        raise ConfigError(
            f"{build_dir} was built for {target}, and is for {found or 'no chip'}.",
            next_step="look for a target that the project sets itself: IDF_TARGET in its CMakeLists.txt.",
        )
    image_sha256(build_dir)


def _forget_other_sources(build_dir: Path, folder: Path) -> None:
    """Remove a build of a project of the same name elsewhere: CMake refuses it."""
    cache = build_dir / _CACHE
    if cache.is_file() and f"CMAKE_HOME_DIRECTORY:INTERNAL={folder}\n" not in cache.read_text(
        errors="replace"
    ):
        shutil.rmtree(build_dir)


def _sdkconfig(project: Project, target: str, more: Path | None, stem: Path) -> Path:
    """Return the sdkconfig to build with: begun with the project's own, where it is of this target.

    ESP-IDF would not change one that was made of other options or defaults, so what it was made of is in its
    name.
    """
    own = Path(project.cmake.says["sdkconfig"][0])
    text = own.read_text(encoding="utf-8") if own.is_file() else ""
    if text and assigned(own).get("IDF_TARGET", '"esp32"') != f'"{target}"':
        text = ""
    text += more.read_text(encoding="utf-8") if more else ""
    kconfigs = [path for folder in project.components for path in sorted(folder.glob("[Kk]config*"))]
    files = [project.folder / "CMakeLists.txt", *project.settings(target), *kconfigs]
    made_of = b"\0".join([text.encode(), *(path.read_bytes() for path in files if path != own)])
    path = stem.with_name(f"{stem.name}-{hashlib.sha256(made_of).hexdigest()[:8]}.sdkconfig")
    if text and not path.is_file():
        path.write_text(text, encoding="utf-8")
    return path
