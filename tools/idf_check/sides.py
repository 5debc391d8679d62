# SPDX-License-Identifier: Apache-2.0
"""The two sides of the API comparison: host/idf and ESP-IDF, under one compiler and one libc."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from hil.base.errors import ConfigError
from hil.boards.firmware.build import FIRMWARE_DIR
from tools.idf_check.config import HOST, two_cores
from tools.idf_check.idf import Command, Idf
from tools.idf_check.process import run
from tools.idf_check.view import View

HOST_FOLDERS = (HOST / "include", *sorted(HOST.glob("*/include")))
CHIP = "esp32c3"  # the one whose instruction set clang knows
_CLANG = ("clang", "--target=riscv32-unknown-elf", "-march=rv32imc", "-mabi=ilp32", "-std=gnu17", "-w")


def host_view(folder: Path, libc: Sequence[str], headers: Sequence[Path] = HOST_FOLDERS) -> View:
    """Return host/idf's headers, configured for two cores."""
    target = HOST / "target" / CHIP / "sdkconfig_target.h"
    config = _two_core_config(folder, "sdkconfig_target.h", target)
    return View((*_clang(libc), f"-I{config}", *(f"-I{path}" for path in headers)), folder)


def idf_view(folder: Path, libc: Sequence[str], idf: Idf, build: Path, commands: Sequence[Command]) -> View:
    """Return ESP-IDF's headers with the flags of the project's own sources, configured for two cores."""
    config = _two_core_config(folder, "sdkconfig.h", build / "config" / "sdkconfig.h")
    words = dict.fromkeys(word for command in commands for word in command.argv if word[:2] in {"-I", "-D"})
    flags = [word for word in words if not word.startswith(f"-I{FIRMWARE_DIR}")]
    return View((*_clang(libc), f"-I{config}", *flags, f"-I{idf.path / 'components'}"), folder)


def libc_flags(command: Command) -> list[str]:
    """Return the flags for the C library of the compiler of ``command``, behind clang's own headers."""
    done = run([command.argv[0], "-E", "-v", "-x", "c", os.devnull])
    listed = re.search(r"search starts here:\n((?: .*\n)+)End of search list", done.errors)
    lines = [line.strip() for line in listed[1].splitlines() if line.startswith(" ")] if listed else []
    found = [folder for folder in map(os.path.realpath, lines) if "/lib/gcc/" not in folder]
    if not found:
        raise ConfigError(f"{Path(command.argv[0]).name} names no C library's headers.")
    return [word for folder in found for word in ("-idirafter", folder)]


def have_clang() -> bool:
    return bool(shutil.which("clang")) and "riscv32" in run(("clang", "--print-targets")).out


def _clang(libc: Sequence[str]) -> tuple[str, ...]:
    return (*_CLANG, "-ferror-limit=0", "-D_GNU_SOURCE", *libc)


def _two_core_config(folder: Path, name: str, original: Path) -> Path:
    config = folder / "config"
    config.mkdir(parents=True, exist_ok=True)
    (config / name).write_text(two_cores(original.read_text(encoding="utf-8")), encoding="utf-8")
    return config
