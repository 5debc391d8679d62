# SPDX-License-Identifier: Apache-2.0
"""The host build's programs for tests: one build tree for each setting of the compiler.

What is asked for is built where anything changed, by one process at a time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.build import BUILD_ROOT, FIRMWARE_DIR, HOST_TREE, PROJECT_NAME, HostTree, locked
from hil.boards.firmware.image import build_image_dir
from hil.boards.firmware.product import build as product_build
from hil.boards.firmware.revision import VERSION_FILE

BUILDS = PROJECT_ROOT / "out" / "tests"
VARIANTS = BUILDS / "variants"

# The tree of the virtual images themselves. `hil build` leaves the option as it is, and builds no tests.
PLAIN = HostTree(FIRMWARE_DIR, BUILD_ROOT / HOST_TREE, ("-DHIL_HOST_TESTS=ON",))
SANITIZED = HostTree(
    FIRMWARE_DIR, BUILDS / "host-sanitized", ("-DHIL_HOST_TESTS=ON", "-DHIL_SANITIZE=address,undefined")
)
RACES = HostTree(FIRMWARE_DIR, BUILDS / "host-races", ("-DHIL_SANITIZE=thread",))
FUZZED = HostTree(FIRMWARE_DIR, BUILDS / "host-fuzzed", ("-DHIL_FUZZ=ON", "-DCMAKE_C_COMPILER=clang-14"))


def build_programs(tree: HostTree, *programs: str) -> Path:
    """Build programs; return the tree's folder: firmware lies in it, tests and variants in test/."""
    with locked(tree.lock, tree.folder.name, print):
        tree.build(*programs)
    return tree.folder


def build_sanitized(*programs: str) -> Path:
    """Build programs with AddressSanitizer and UndefinedBehaviorSanitizer, as build_programs() does."""
    return build_programs(SANITIZED, *programs)


def build_variant(name: str) -> Path:
    """Build the image of a variant (firmware/host/test/CMakeLists.txt) for an ESP32; return its folder."""
    folder = VARIANTS / name
    version = (FIRMWARE_DIR / VERSION_FILE).read_text(encoding="utf-8").strip()
    with locked(PLAIN.lock, name, print):
        PLAIN.build(name)
        build_image_dir(PLAIN.folder / "test" / name, folder, project=PROJECT_NAME, version=version)
    return folder


def quick_compiler(folder: Path, *, unless: str = "") -> Path:
    """Write what CMake calls before the compiler, and return it: nothing is optimised but a file ``unless``.

    A build of all sources takes half the time with it: for tests of what is built, not of how fast it is.
    """
    program = folder / "cc-quick"
    as_it_is = f'case "$*" in *{unless}*) exec "$@" ;; esac\n' if unless else ""
    program.write_text(f'#!/bin/sh\n{as_it_is}exec "$@" -O0\n')
    program.chmod(0o755)
    return program


def build_product(folder: Path, **more: Any) -> Path:
    """Build a product as hil does, in hil's own trees: products of one host configuration share objects."""
    return product_build.build_product(folder, **{"tree_root": BUILD_ROOT, **more})
