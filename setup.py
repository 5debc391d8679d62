# SPDX-License-Identifier: Apache-2.0
"""What pyproject.toml cannot say: a wheel knows what it was built from (hil/data/build.json).

Its commit, and the repository on a server that this has come from: "" where it came from nowhere.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
STAMP = Path("hil") / "data" / "build.json"  # hil.store.run_info reads it


def git(*arguments: str) -> str | None:
    """Return what git says of this folder, None where it says nothing: a source archive has no history."""
    try:
        done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def repository() -> str:
    """Return OWNER/NAME of the remote `origin`, "" without one or where it is a folder of this machine."""
    found = re.fullmatch(
        r"(?:https?://[^/]+/|ssh://[^/]+/|[\w.-]+@[\w.-]+:)([\w.-]+/[\w.-]+?)(?:\.git)?/?",
        git("remote", "get-url", "origin") or "",
    )
    return found[1] if found else ""


class BuildWithCommit(build_py):
    def run(self) -> None:
        if self.editable_mode:
            super().run()
            return
        commit = git("rev-parse", "HEAD") if (ROOT / ".git").exists() else None
        dirty = bool(git("status", "--porcelain", "--untracked-files=normal")) if commit else False
        shutil.rmtree(
            self.build_lib, ignore_errors=True
        )  # what an earlier build left would get into the wheel
        super().run()
        path = Path(self.build_lib) / STAMP
        path.parent.mkdir(parents=True, exist_ok=True)
        stamp = {"commit": commit or "", "dirty": dirty, "repository": repository() if commit else ""}
        path.write_text(json.dumps(stamp) + "\n", encoding="utf-8")


setup(cmdclass={"build_py": BuildWithCommit})
