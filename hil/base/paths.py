# SPDX-License-Identifier: Apache-2.0
"""Where the tool is, and where the project is that it works for.

The tool is the package hil and what it brings in hil/data: folders once it is installed, in a checkout links
to the folders of the same names at its top level. The project is the user's: what is built, measured and
recorded there stays there. Working in a checkout of the tool, both are that checkout.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
IMPORT_ROOT = PACKAGE.parent
_DATA = PACKAGE / "data"
BUILD_STAMP = _DATA / "build.json"  # which commit a wheel was built from (hatch_build.py)
TOOL_FIRMWARE = (_DATA / "firmware").resolve()
TOOL_THRESHOLDS = (_DATA / "thresholds").resolve()
TOOL_RACKS = PACKAGE / "racks"
TOOL_BENCHES = PACKAGE / "benches"
INIT_FILES = _DATA / "init"  # what `hil init` writes
CHECKOUT = IMPORT_ROOT if (_DATA / "firmware").is_symlink() else None  # None: installed from a wheel

PROJECT_FILE = "hil.toml"
_KEY = re.compile(r"^(\w+):", re.MULTILINE)


def find_project(start: Path, checkout: Path | None = CHECKOUT) -> Path:
    """Return the project that ``start`` is in: the nearest folder upwards that holds hil.toml.

    Where there is none: the checkout that the tool runs from, where ``start`` is in it; else the top of the
    git checkout that ``start`` is in, else ``start``. So a checkout writes nothing into itself for others.
    """
    upwards = (start, *start.parents)
    marked = [folder for folder in upwards if (folder / PROJECT_FILE).is_file()]
    if marked or (checkout and checkout in upwards):
        return marked[0] if marked else checkout or start
    return next((folder for folder in upwards if (folder / ".git").exists()), start)


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:  # somebody removed the folder that the shell is in
        return Path("/")


PROJECT_ROOT = find_project(_here())
# what a project has of its own lies in its folder hil/, but in the tool's checkout, where that is the package
_OWN = PROJECT_ROOT if PROJECT_ROOT == CHECKOUT else PROJECT_ROOT / "hil"
PROJECT_THRESHOLDS = _OWN / "thresholds"
PROJECT_RACK = _OWN / "rack.yaml"


def is_of_suite(thresholds: Path) -> bool:
    """Say whether a thresholds file is of a pytest suite, whose metrics are those that its tests call.

    A file with the name of a bench of the tool is that bench's: a team may have meant its limits.
    """
    if (TOOL_THRESHOLDS / thresholds.name).is_file():
        return False
    keys = set(_KEY.findall(thresholds.read_text(encoding="utf-8", errors="replace")))
    return "bench" in keys and not keys & {"parameters", "suites", "metrics"}


def own_benches() -> Path | None:
    """Return the project's own folder of benches; None where it has none."""
    own = PROJECT_ROOT / "hil" / "benches"
    return own if PROJECT_ROOT != CHECKOUT and own.is_dir() else None


def bench_folders() -> tuple[Path, ...]:
    """Return the folders of benches: the tool's, and the project's own hil/benches where it has one."""
    own = own_benches()
    return (TOOL_BENCHES, own) if own else (TOOL_BENCHES,)


def python_path() -> str:
    """Return the PYTHONPATH with which a process of ours finds this package, wherever it is started."""
    own = (
        [str(CHECKOUT)] if CHECKOUT else []
    )  # what is installed is found; before the standard library it may hide some
    return os.pathsep.join([*own, *filter(None, [os.environ.get("PYTHONPATH", "")])])
