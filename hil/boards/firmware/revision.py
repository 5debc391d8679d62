"""The firmware sources of another commit, for as long as they are built."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError, RigError
from hil.base.git import git, try_git
from hil.boards.firmware.variant import Image

FOLDER = "firmware"
VERSION_FILE = "version.txt"
UNPACK_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Revision:
    """A commit: ``name`` is what it was asked for by."""

    name: str
    commit: str

    def __str__(self) -> str:
        return self.name if self.commit.startswith(self.name) else f"{self.name} ({self.commit[:12]})"


@dataclass(frozen=True)
class SourceState:
    """Which sources: ``commit`` is "" outside of a repository, ``dirty`` says that they differ from it."""

    commit: str
    dirty: bool


def find_revision(repository: Path, name: str) -> Revision:
    """Return the commit that ``name`` means. Raises ConfigError where git knows none."""
    found = try_git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if found.returncode:
        said = found.stderr.decode(errors="replace").strip()
        raise ConfigError(
            f"{name!r} is no commit in {repository}{f': {said}' if said else ''}.",
            next_step="check the name; a shallow clone needs its history first: git fetch --unshallow.",
        )
    return Revision(name, found.stdout.decode().strip())


def source_state(repository: Path) -> SourceState:
    """Return what the firmware sources in the working tree are.

    Raises:
        ConfigError: git refuses to answer, e.g. because the checkout belongs to another user.
    """
    found = try_git(repository, "rev-parse", "--verify", "--quiet", "HEAD")
    said = found.stderr.decode(errors="replace")
    if found.returncode and said and "not a git repository" not in said:
        raise ConfigError(
            f"git does not tell which commit {repository} is: {said.strip()}",
            next_step="do what it says, so that the build can be traced to its commit.",
        )
    if found.returncode:
        return SourceState("", dirty=False)
    changes = git(repository, "status", "--porcelain", "--untracked-files=normal", "--", FOLDER)
    return SourceState(found.stdout.decode().strip(), dirty=bool(changes))


@contextmanager
def sources_at(repository: Path, revision: Revision, folder: Path) -> Iterator[Path]:
    """Give ``folder``/firmware as it was at ``revision``; what a killed build left there is removed first.

    Raises:
        ConfigError: the commit holds no firmware.
        RigError: the disk does not take the sources.
    """
    shutil.rmtree(folder, ignore_errors=True)
    if try_git(repository, "cat-file", "-e", f"{revision.commit}:{FOLDER}").returncode:
        raise ConfigError(f"the commit {revision} has no folder {FOLDER}/, so there is nothing to build.")
    try:
        _unpack(repository, revision, folder)
        yield folder / FOLDER
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unpack(repository: Path, revision: Revision, folder: Path) -> None:
    """Unpack an archive: unlike a worktree it leaves no trace in .git, whatever happens to this process."""
    packed = try_git(repository, "archive", "--format=tar", revision.commit, FOLDER)
    if packed.returncode:
        said = packed.stderr.decode(errors="replace").strip()
        raise ConfigError(f"git does not give the firmware of {revision}: {said}.")
    folder.mkdir(parents=True)
    tar = subprocess.run(
        ["tar", "-x", "-m", "-f", "-", "-C", str(folder)],
        input=packed.stdout,
        capture_output=True,
        timeout=UNPACK_TIMEOUT_S,
        check=False,
    )
    if tar.returncode:
        raise RigError(
            f"unpacking the firmware of {revision} in {folder} failed: {tar.stderr.decode().strip()}."
        )


def check_sources(sources: Path, revision: Revision, image: Image, *, virtual: bool) -> None:
    """Refuse sources of which ``image`` cannot be built. Raises ConfigError naming what is missing."""
    chip = image.target.rpartition("-")[2]
    needed = ["partitions.csv", "host/CMakeLists.txt"] if virtual else ["CMakeLists.txt"]
    if virtual and chip != "esp32":  # there was one chip before there were folders for each
        needed.append(f"host/idf/target/{chip}")
    if image.overlay:
        needed.append(image.overlay)
    missing = [f"{FOLDER}/{name}" for name in needed if not (sources / name).exists()]
    if missing:
        kind = "virtual " if virtual else ""
        raise ConfigError(
            f"the commit {revision} has no {' and no '.join(missing)}, which a build for {kind}{chip}"
            f"{f' with a tick of {image.tick_hz} Hz' if image.variant else ''} needs.",
            next_step="compare with a later commit, or leave this target out.",
        )
