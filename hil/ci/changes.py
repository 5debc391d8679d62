"""What a change touches, so that nothing is measured in vain and nothing is left out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Literal

from hil.base.errors import ConfigError
from hil.base.git import git, try_git

Kind = Literal["documentation", "tests", "firmware", "harness"]


def merge_base(repository: Path, tip: str, head: str) -> str:
    """Return where ``head`` left the branch of ``tip``; empty where there is nothing to compare with.

    Raises:
        ConfigError: git knows no common ancestor, mostly because the clone is shallow.
    """
    if not tip:
        return ""
    found = try_git(repository, "merge-base", tip, head)
    if found.returncode:
        said = found.stderr.decode(errors="replace").strip() or "they have no common ancestor"
        raise ConfigError(
            f"the merge base of {tip[:12]} and {head[:12]} was not found: {said}.",
            next_step="fetch the history (fetch-depth: 0), or rebase the branch.",
        )
    base = found.stdout.decode().strip()
    return "" if base == git(repository, "rev-parse", head) else base


def changed_files(repository: Path, base: str, head: str) -> tuple[str, ...]:
    """Return the paths that differ between two commits, both names of a renamed file. Raises ConfigError."""
    names = git(repository, "diff", "--name-only", "--no-renames", "-z", base, head)
    return tuple(name for name in names.split("\0") if name)


def kind_of(path: str) -> Kind:
    """Tell what a path belongs to; what is not known is harness, so that it is measured."""
    parts = PurePosixPath(path).parts
    if parts[0] == "docs" or (len(parts) == 1 and path.endswith(".md")) or path == "LICENSE":
        return "documentation"
    if parts[0] in ("tests", "firmware"):
        return "tests" if parts[0] == "tests" else "firmware"
    return "harness"


def kinds_of(paths: Iterable[str]) -> tuple[Kind, ...]:
    """Return what the paths belong to, sorted, each once."""
    return tuple(sorted({kind_of(path) for path in paths}))
