# SPDX-License-Identifier: Apache-2.0
"""Build a product for a chip: idf.py does it, in a build folder and with an sdkconfig of ours.

The project's own ``build/`` and ``sdkconfig`` stay as they are, for whoever works in it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.idf_project import read_cmake
from hil.boards.firmware.build import Say, forget_other_sources, locked
from hil.boards.firmware.build_folder import build_target, image_sha256
from hil.boards.firmware.product.kconfig import assigned
from hil.boards.firmware.revision import run_step
from hil.store.files import short_path


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
    project = read_cmake(folder, chip=target)
    name = project.name
    if not shutil.which("idf.py"):
        raise ConfigError(
            f"building {name} for {target} needs ESP-IDF, and idf.py is not on PATH.",
            next_step=". $IDF_PATH/export.sh, or pass a build: --firmware DIR.",
        )
    build_dir = build_root / f"{name}-{target}"
    with locked(build_root / f"{build_dir.name}.lock", f"{name} for {target}", say):
        forget_other_sources(build_dir, folder.resolve())
        say(f"Building {name} for {target} in {short_path(build_dir)} with idf.py")
        options = (build_root / f"{build_dir.name}.sdkconfig").absolute()
        options.unlink(missing_ok=True)  # ESP-IDF changes no value in it where the defaults change
        if text := _options(Path(project.says["sdkconfig"][0]), target, sdkconfig):
            options.write_text(text, encoding="utf-8")
        run_step(
            (
                "idf.py", "-B", str(build_dir.absolute()), f"-DIDF_TARGET={target}", f"-DSDKCONFIG={options}",
                "build",
            ),
            log=build_root / f"{build_dir.name}.log",
            fresh=True,
            cwd=folder.resolve(),
        )  # fmt: skip
        found = build_target(build_dir)
        if found != target:
            raise ConfigError(
                f"{build_dir} was built for {target}, but its image is for {found or 'no chip'}.",
                next_step="look for IDF_TARGET in the project's CMakeLists.txt.",
            )
        image_sha256(build_dir)
        return publish(build_dir) if publish else build_dir


def _options(own: Path, target: str, more: Path | None) -> str:
    """Return the text of a new sdkconfig: the project's own, where it is of this target, then ``more``."""
    text = own.read_text(encoding="utf-8") if own.is_file() else ""
    if text and assigned(own).get("IDF_TARGET", '"esp32"') != f'"{target}"':
        text = ""
    return text + (more.read_text(encoding="utf-8") if more else "")
