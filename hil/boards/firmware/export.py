# SPDX-License-Identifier: Apache-2.0
"""A project's folder as it was at a commit, with the repository around it, for as long as it is built.

The files are those that a checkout would have, filters and line ends included. Neither the working tree nor
git's index is touched, and nothing is left in .git, whatever happens to this process.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.git import git, try_git
from hil.boards.firmware.revision import Revision

_SUBMODULE = "160000"  # the mode of a tree's entry that is another repository's commit


def top_of(folder: Path) -> Path:
    """Return the top of the git checkout that a folder is in. Raises ConfigError where it is in none."""
    found = try_git(folder, "rev-parse", "--show-toplevel")
    if found.returncode:
        said = found.stderr.decode(errors="replace").strip()
        raise ConfigError(
            f"{folder} is in no git checkout: {said}.",
            next_step="building a commit needs a repository: git init, git commit.",
        )
    return Path(found.stdout.decode().removesuffix("\n"))


@contextmanager
def exported(folder: Path, revision: Revision, into: Path) -> Iterator[Path]:
    """Give ``folder`` as it was at ``revision``, below ``into``, which is removed before and afterwards.

    What is given need not be there: the commit may not have had the folder.

    Raises:
        ConfigError: no checkout, or git does not give the files; a submodule's commit that is not here.
    """
    top = top_of(folder)
    shutil.rmtree(into, ignore_errors=True)
    try:
        into.mkdir(parents=True)
        _write_tree(top, revision.commit, into, into.with_name(f"{into.name}.index"), str(revision))
        yield into / folder.resolve().relative_to(top.resolve())
    finally:
        shutil.rmtree(into, ignore_errors=True)


def _write_tree(repository: Path, commit: str, into: Path, index: Path, asked: str) -> None:
    env = {"GIT_INDEX_FILE": str(index.absolute())}
    try:
        git(repository, "read-tree", commit, env=env)
        git(repository, "checkout-index", "--all", "--quiet", f"--prefix={into.absolute()}/", env=env)
    finally:
        for left in (index, index.with_name(f"{index.name}.lock")):
            left.unlink(missing_ok=True)
    for path, wanted in _submodules(repository, commit):
        inner = repository / path
        if not (inner / ".git").exists():
            continue  # the working tree does without it, too
        if try_git(inner, "cat-file", "-e", f"{wanted}^{{commit}}").returncode:
            raise ConfigError(
                f"{asked} has the submodule {path} at {wanted[:12]}, which is not fetched.",
                next_step=f"git -C {inner} fetch",
            )
        (into / path).mkdir(parents=True, exist_ok=True)
        _write_tree(inner, wanted, into / path, index, asked)


def _submodules(repository: Path, commit: str) -> list[tuple[str, str]]:
    """Return path and commit of each submodule of a tree."""
    entries = git(repository, "ls-tree", "-r", "-z", commit).split("\0")
    found = (entry.partition("\t") for entry in entries if entry.startswith(_SUBMODULE))
    return [(path, facts.split()[2]) for facts, _tab, path in found]
