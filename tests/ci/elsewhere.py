# SPDX-License-Identifier: Apache-2.0
"""The tool outside of this checkout, without a network: in environments of the packages that are here."""

from __future__ import annotations

import hashlib
import sys
import venv
from pathlib import Path

from tests.ci.git_process import git
from tests.lab import ROOT

LOCKS = ("requirements-build.lock", "requirements.lock", "requirements-nodeps.lock", "pyproject.toml")


def commit_all(folder: Path) -> str:
    """Commit everything in a folder, made a repository where it is none; return the commit."""
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "all")
    return git(folder, "rev-parse", "HEAD")


def note_installed(environment: Path, tool: Path) -> None:
    """Write what .ci/bootstrap writes where the lock files of ``tool`` are installed."""
    noted = {
        "installed": LOCKS,
        "installed-reporting": ("requirements.lock",),
        "installed-site": ("reports/site/package-lock.json", "requirements.lock"),
        "installed-release": ("requirements-release.lock",),
    }
    for name, files in noted.items():
        digest = hashlib.sha256(b"".join((tool / file).read_bytes() for file in files)).hexdigest()
        (environment / f".{name}").write_text(f"{digest}\n")


def seed_environment(folder: Path, tool: Path) -> None:
    """Make what .ci/bootstrap makes of the locks, of the packages that are here, but for the tool itself."""
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    (here,) = Path(sys.prefix).glob("lib/python3.*/site-packages")
    for path in here.iterdir():
        if not path.name.startswith(("__editable__", "__pycache__", "esp_hil-")) and path.suffix != ".pth":
            (packages / path.name).symlink_to(path)
    note_installed(folder, tool)


def link_environment(to: Path, tool: Path | None = None) -> None:
    """Give ``to`` the environment of this checkout, as it is, so that ``tool`` installs nothing into it.

    ``tool`` is a copy of the checkout, ``to`` itself where it is not given.
    """
    (to / ".venv").mkdir()
    for name in ("bin", "lib", "release", "pyvenv.cfg"):
        (to / ".venv" / name).symlink_to(ROOT / ".venv" / name)
    note_installed(to / ".venv", tool or to)
