# SPDX-License-Identifier: Apache-2.0
"""What pyproject.toml cannot say: a wheel knows its commit, and its long description has no relative link."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).resolve().parent
STAMP = "hil/data/build.json"  # hil.store.run_info reads it

# where Markdown and HTML name a target: [text](target), [name]: target, href="target"
_TARGET = re.compile(
    r"""(\]\(<?|^ {0,3}\[[^]\n]+\]:[ \t]+<?|\b(?:href|src|srcset)=["'])([^\s)>"']+)""", re.MULTILINE
)
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
_IMAGE = re.compile(r"\.(?:png|svg|gif|jpe?g|webp)$", re.IGNORECASE)


def absolute(text: str, repository: str, tag: str) -> str:
    """Return the README with each link and image as an address of the repository at ``tag``."""

    def replace(match: re.Match[str]) -> str:
        opening, target = match.groups()
        if _ABSOLUTE.match(target):
            return match[0]
        path = f"README.md{target}" if target.startswith("#") else target.removeprefix("./")
        return f"{opening}{repository}/{'raw' if _IMAGE.search(path) else 'blob'}/{tag}/{path.lstrip('/')}"

    return _TARGET.sub(replace, text)


class Readme(MetadataHookInterface):
    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the long description: an index shows it where relative links lead nowhere."""
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        found = re.search(r'^__version__ = "(.+)"$', (ROOT / "hil" / "__init__.py").read_text(), re.MULTILINE)
        assert found
        readme = absolute(text, metadata["urls"]["Repository"], f"v{found[1]}")
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}


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


def stamp() -> Mapping[str, object]:
    """Return commit, state and repository of the sources; each empty outside of a checkout."""
    commit = git("rev-parse", "HEAD") if (ROOT / ".git").exists() else None
    dirty = bool(git("status", "--porcelain", "--untracked-files=normal")) if commit else False
    return {"commit": commit or "", "dirty": dirty, "repository": repository() if commit else ""}


class Stamp(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put the stamp into the wheel; an editable installation asks git itself."""
        if version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name) / "build.json"
        path.write_text(json.dumps(stamp()) + "\n", encoding="utf-8")
        build_data["force_include"][str(path)] = STAMP

    def finalize(self, version: str, *_: object) -> None:
        """Remove the file that has gone into the wheel."""
        if version != "editable":
            self._folder.cleanup()
