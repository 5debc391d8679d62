# SPDX-License-Identifier: Apache-2.0
"""The firmware sources of another commit, for as long as they are built.

One step of a build: a process with a log and a deadline; nothing is left of it however this one ends.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from hil.base.errors import ConfigError, RefusedSourcesError, RigError
from hil.base.git import git, try_git
from hil.boards.firmware.build_folder import Image
from hil.model import Ruler

FOLDER = "firmware"
VERSION_FILE = "version.txt"
UNPACK_TIMEOUT_S = 120.0
_OF_COMPILER = re.compile(r":\d+: (?:fatal )?error: ")


@dataclass(frozen=True)
class Revision:
    """A commit: ``name`` is what it was asked for by."""

    name: str
    commit: str

    def __str__(self) -> str:
        return self.name if self.commit.startswith(self.name) else f"{self.name} ({self.commit[:12]})"


@dataclass(frozen=True)
class SourceState:
    """Which sources: ``commit`` is "" outside of a repository, ``dirty`` says that they differ from it.

    ``ruler`` is whose ruler they were built with, None where it was left theirs. ``product`` is what a team's
    own firmware calls itself.
    """

    commit: str
    dirty: bool
    ruler: Ruler | None = None
    product: str = ""


def find_revision(repository: Path, name: str) -> Revision:
    """Return the commit that ``name`` means. Raises ConfigError where git knows none."""
    found = try_git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if found.returncode:
        said = found.stderr.decode(errors="replace").strip()
        raise ConfigError(
            f"{name!r} is not a commit in {repository}{f': {said}' if said else ''}.",
            next_step="check the name; a shallow clone needs its history first: git fetch --unshallow.",
        )
    return Revision(name, found.stdout.decode().strip())


def source_state(repository: Path, sources: str = FOLDER) -> SourceState:
    """Return what the firmware's ``sources`` in the working tree are, ":/" for all of the repository.

    Raises:
        ConfigError: git refuses to answer, e.g. because the checkout belongs to another user.
    """
    found = try_git(repository, "rev-parse", "--verify", "--quiet", "HEAD")
    said = found.stderr.decode(errors="replace")
    if found.returncode and said and "not a git repository" not in said:
        raise ConfigError(
            f"git cannot name the commit of {repository}: {said.strip()}",
            next_step="follow git's advice, so that the build can be traced to its commit.",
        )
    if found.returncode:
        return SourceState("", dirty=False)
    changes = git(repository, "status", "--porcelain", "--untracked-files=normal", "--", sources)
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
        raise RefusedSourcesError(
            f"the commit {revision} has no folder {FOLDER}/, so there is nothing to build."
        )
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
        raise ConfigError(f"git cannot export the firmware of {revision}: {said}.")
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
        raise RefusedSourcesError(
            f"the commit {revision} has no {' and no '.join(missing)}, which a build for {kind}{chip}"
            f"{f' with a tick of {image.tick_hz} Hz' if image.variant else ''} needs.",
            next_step="compare with a later commit, or leave this target out.",
        )


STEP_TIMEOUT_S = 1800.0
END_TIMEOUT_S = 2.0
_LEAST_FREE_BYTES = 4096  # a block: what the compiler's own word would need


def run_step(
    argv: Sequence[str],
    *,
    log: Path,
    fresh: bool = False,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run ``argv`` and write what it says to ``log``, a ``fresh`` one or at its end; ``env`` adds variables.

    Raises:
        ConfigError: it failed (its first error, its log), did not end in time, or cannot be started.
        RigError: the disk is full.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w" if fresh else "a", encoding="utf-8") as out:
            out.write(f"$ {' '.join(argv)}\n")
            out.flush()
            status = _run_to_end(argv, out, log, cwd, {**os.environ, **(env or {})})
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise _disk_full(log) from error
    if status and _ran_out_of_space(log):
        raise _disk_full(log)
    if status:
        said = _first_error(log)
        next_step = (
            "mend the source" if _OF_COMPILER.search(said) else "read what stands before it in the log"
        )
        raise ConfigError(
            f"the build failed: {said}", log=str(log), next_step=f"{next_step}, and build again."
        )


# The group's leader outlives a kill -9 of ours just long enough to end what it started. SIGTERM first, as
# ninja keeps compilers in process groups of their own and passes it on to them.
_LEADER = """
trap 'trap "" TERM; kill -TERM 0; wait; exit 143' TERM
test "$PPID" = "$0" || exit 1
"$@" &
wait $!
"""


def _ran_out_of_space(log: Path) -> bool:
    """Return whether the disk was full: the log tells, where it had room to, else the disk itself."""
    told = os.strerror(errno.ENOSPC) in log.read_text(encoding="utf-8", errors="replace")
    return told or shutil.disk_usage(log.parent).free < _LEAST_FREE_BYTES


def _disk_full(log: Path) -> RigError:
    return RigError(
        f"the build could not go on: no space left on the disk of {log.parent}.",
        log=str(log),
        next_step="free some space on it (make clean removes builds and results), then build again.",
    )


def _run_to_end(argv: Sequence[str], out: TextIO, log: Path, cwd: Path | None, env: Mapping[str, str]) -> int:
    leader = ("setpriv", "--pdeathsig", "TERM", "--", "sh", "-c", _LEADER, str(os.getpid()))
    try:
        process = subprocess.Popen(
            [*leader, *argv], stdout=out, stderr=subprocess.STDOUT, cwd=cwd, env=env, start_new_session=True
        )
    except OSError as error:
        raise ConfigError(
            f"starting {argv[0]}: {error.strerror}.", next_step="sudo apt-get install util-linux"
        ) from error
    try:
        return process.wait(STEP_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"{argv[0]} did not end within {STEP_TIMEOUT_S:g} s.", log=str(log)) from error
    finally:
        if process.returncode is None:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_TIMEOUT_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(END_TIMEOUT_S)


def _first_error(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    wrong = [number for number, line in enumerate(lines) if "error:" in line or "Error" in line]
    if not wrong:
        return lines[0].strip() if lines else "no output"
    found = ""
    for line in filter(None, (line.strip() for line in lines[wrong[0] :])):
        found = f"{found} {line}".lstrip()
        if not found.endswith(":"):  # CMake says in the next line what it is
            break
    return found
