# SPDX-License-Identifier: Apache-2.0
"""Repositories with a history of firmware, and `hil build` in a copy of this checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.lab import ROOT, run

GIT = ("git", "-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run([*GIT, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit_all(folder: Path) -> str:
    """Commit the working tree; return the commit."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "change")
    return git(folder, "rev-parse", "HEAD")


def copy_checkout(to: Path) -> Path:
    """Copy what `hil build` needs to a repository of its own, of which nothing is committed yet."""
    for part in ("firmware", "hil"):
        shutil.copytree(ROOT / part, to / part, ignore=shutil.ignore_patterns("__pycache__", "build", "data"))
    # links are what a checkout has
    shutil.copytree(ROOT / "hil" / "data", to / "hil" / "data", symlinks=True)
    (to / ".gitignore").write_text("/out/\n__pycache__/\n")
    git(to, "init", "--quiet")
    return to


def build_there(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `hil build` with the copy's own modules."""
    env = {**os.environ, "PYTHONPATH": str(checkout)}
    code = "import sys; from hil.cli.app import run_command; sys.exit(run_command(sys.argv[1:]))"
    return run([sys.executable, "-P", "-c", code, "build", *arguments], checkout, env=env)
