# SPDX-License-Identifier: Apache-2.0
"""Debian's cross compilers under the names of Espressif's, for a check of sources without Espressif's own.

ESP-IDF's build is left as it is: it finds, on PATH, programs of the names it looks for. They drop the flags
that only Espressif's compilers know and add newlib's headers. There is no library: nothing of it can run.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

NEWLIB = Path("/usr/include/newlib")
GENERIC = {"riscv32-esp-elf": "riscv64-unknown-elf", "xtensa-esp": "xtensa-lx106-elf"}
PROGRAMS = ("gcc", "g++", "ar", "ranlib", "objcopy", "objdump", "nm", "strip", "ld", "readelf", "size")
REENT = Path("sys/reent.h")  # newlib 3 has a const pointer where Espressif's newlib 4 has a plain one
OVERLAY = "include"
FD_SET_MEMBER = "-Dfds_bits=fds_bits"  # newlib 4 calls it __fds_bits, and so would ESP-IDF's FD_SET()
_FOREIGN = (
    "-mlongcalls",
    "-mdynconfig=",
    "--specs=",
    "-specs=",
    "-mtune=esp",
    "-fno-tree-switch-conversion=",
)
_STEPS = ("-c", "-S", "-E", "-fsyntax-only")


def generic(prefix: str) -> str:
    """Return the prefix of the compiler that stands in for Espressif's of ``prefix``."""
    return next(ours for theirs, ours in GENERIC.items() if prefix.startswith(theirs))


def install(folder: Path, prefix: str) -> None:
    """Put programs of Espressif's names into ``folder``; each starts this module."""
    folder.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        path = folder / f"{prefix}-{program}"
        words = [sys.executable, str(Path(__file__).resolve()), str(folder), generic(prefix), program]
        path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        path.chmod(0o755)
    reent = (NEWLIB / REENT).read_text(encoding="utf-8")
    (folder / OVERLAY / REENT).parent.mkdir(parents=True, exist_ok=True)
    (folder / OVERLAY / REENT).write_text(reent.replace("*const _global_impure_ptr", "*_global_impure_ptr"))


def translate(prefix: str, overlay: Path, arguments: Sequence[str]) -> list[str]:
    """Return what the gcc of ``prefix`` is started with, given what ESP-IDF gives to Espressif's."""
    words = [word for argument in arguments for word in _expand(argument)]
    kept = [word for word in words if not word.startswith(_FOREIGN)]
    # behind the compiler's own headers, as in Espressif's
    libc = [word for folder in (overlay, NEWLIB) for word in ("-idirafter", str(folder))]
    # a program without a library cannot be linked; CMake's trial programs are content with an object file
    link = [] if any(step in kept for step in _STEPS) else ["-nostdlib", "-r"]
    return [*_defaults(prefix, kept), *kept, *libc, FD_SET_MEMBER, *link]


def _defaults(prefix: str, words: Sequence[str]) -> list[str]:
    """Return what Espressif's compiler does unasked: 32 bits, where the generic one has 64."""
    if not prefix.startswith("riscv64"):
        return []
    chosen = any(word.startswith("-march=") for word in words)
    return ["-mabi=ilp32", *([] if chosen else ["-march=rv32imc_zicsr_zifencei"])]


def _expand(argument: str) -> list[str]:
    """Return the words of a response file (``@file``), or the argument itself."""
    if not argument.startswith("@"):
        return [argument]
    return shlex.split(Path(argument[1:].strip('"')).read_text(encoding="utf-8"))


def main(arguments: Sequence[str]) -> None:
    folder, prefix, program, *rest = arguments
    if "-print-sysroot" in rest:
        print(NEWLIB)  # ESP-IDF shortens it in debug information
        return
    words = translate(prefix, Path(folder, OVERLAY), rest) if program in {"gcc", "g++"} else rest
    os.execvp(f"{prefix}-{program}", [f"{prefix}-{program}", *words])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main(sys.argv[1:])
