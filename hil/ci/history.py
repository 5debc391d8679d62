# SPDX-License-Identifier: Apache-2.0
"""What outlives artefacts and caches: two branches of their own, that share no commit with the sources.

``hil-history`` holds the reports' JSON-lines files (metrics, tests, racks' health), to which each night adds
lines. ``hil-data`` holds the boot values (hil.history): a file a run, ``<rack>/<run-id>.json``, which never
changes, so that racks that push at once cannot come into conflict. Both are read and written without touching
the working tree; no file is ever deleted from them.

What nights measure beside the head, and what becomes of it.
"""

from __future__ import annotations

import datetime
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError, RigError
from hil.base.git import git, try_git
from hil.history import load
from hil.history.from_run import add_run
from hil.history.nightly.reference import load_references, tonight
from hil.history.saving import write_once
from hil.store import RunDirectory, read_run
from hil.store.files import disk_error
from hil.thresholds.baselines import FOLDER

BRANCH = "hil-history"
DATA_BRANCH = "hil-data"
FETCHED = ".fetched-commit"
ATTEMPTS = 5  # at one state of the branch
_MOST_ATTEMPTS = 50
_AUTHOR = "github-actions[bot]"
_EMAIL = "41898282+github-actions[bot]@users.noreply.github.com"
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", _AUTHOR), ("EMAIL", _EMAIL))
}


@dataclass(frozen=True)
class Layout:
    """Which files a branch holds: ``glob`` in a folder, ``names`` on the branch. Runs' files never change."""

    glob: str
    names: re.Pattern[str]
    immutable: bool

    def files(self, folder: Path) -> dict[str, Path]:
        """Return the folder's files by their names on the branch."""
        found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.glob(self.glob))}
        return {name: path for name, path in found.items() if self.names.fullmatch(name)}


LAYOUTS: Mapping[str, Layout] = {
    BRANCH: Layout("*.jsonl", re.compile(r"[\w-][\w.-]*\.jsonl"), immutable=False),
    DATA_BRANCH: Layout("*/*.json", re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*\.json"), immutable=True),
}


def fetch(repository: Path, folder: Path, *, remote: str = "origin", branch: str = BRANCH) -> list[str]:
    """Write the branch's files into ``folder``; return their names, none where it does not exist yet.

    Files that are in the folder only stay there.

    Raises:
        ConfigError: the remote does not answer, or a run is in the folder with other content.
        RigError: the disk does not take it.
    """
    tip = _tip(repository, remote, branch)
    layout = LAYOUTS[branch]
    blobs = {name: blob for name, blob in _blobs(repository, tip).items() if layout.names.fullmatch(name)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in zip(blobs, _contents(repository, list(blobs.values())), strict=True):
            if layout.immutable:
                write_once(folder / name, content)
            else:
                (folder / name).write_bytes(content)
        if not layout.immutable:
            (folder / FETCHED).write_text(tip, encoding="utf-8")
    except OSError as error:
        raise disk_error(f"could not write the files of {branch} to {folder}", error, branch) from error
    return list(blobs)


def push(
    repository: Path, folder: Path, message: str, *, remote: str = "origin", branch: str = BRANCH
) -> str:
    """Commit the files of ``folder`` to the branch; return the commit, empty where nothing is new.

    Where somebody else was faster, their files and lines are kept and what they lack is added.

    Raises:
        ConfigError: nothing to push, a damaged file, a run that the branch holds with other content, or the
            remote does not answer.
        RigError: the remote refused each attempt.
    """
    layout = LAYOUTS[branch]
    files = layout.files(folder)
    if not files:
        raise ConfigError(f"{folder} holds no {layout.glob}, so there is no history to push.")
    if layout.immutable:
        load(folder)  # what is damaged would stay on the branch for ever
    fetched = folder / FETCHED
    base = fetched.read_text(encoding="utf-8") if fetched.exists() else ""
    said, last, refused = "", "", 0
    for _attempt in range(_MOST_ATTEMPTS):
        tip = _tip(repository, remote, branch)
        if tip != last:  # somebody else's push was taken, so this is no refusal but a race
            last, refused = tip, 0
        if layout.immutable:
            ours = _new_runs(repository, files, tip, branch)
        else:
            ours = _joined_lines(repository, files, tip, merge=tip != base)
        commit = _commit(repository, ours, message, tip)
        if not commit:
            return ""
        sent = try_git(repository, "push", remote, f"{commit}:refs/heads/{branch}")
        if sent.returncode == 0:
            if not layout.immutable:
                fetched.write_text(commit, encoding="utf-8")
            return commit
        said = sent.stderr.decode(errors="replace").strip()
        refused += 1
        if refused == ATTEMPTS:
            break
    raise RigError(
        f"pushing {branch} to {remote} was refused {refused} times: {said}",
        next_step="the job needs `contents: write`, and the branch must not be protected.",
    )


def _tip(repository: Path, remote: str, branch: str) -> str:
    """Fetch the branch; return its commit, empty where the remote does not have it."""
    if not git(repository, "ls-remote", remote, f"refs/heads/{branch}"):
        return ""
    git(repository, "fetch", "--no-tags", "--depth=1", remote, f"refs/heads/{branch}")
    return git(repository, "rev-parse", "FETCH_HEAD")


def _blobs(repository: Path, tip: str) -> dict[str, str]:
    """Return the ids of a commit's files, by name."""
    listed = git(repository, "ls-tree", "-r", "-z", tip).split("\0") if tip else []
    entries = (entry.partition("\t") for entry in listed if entry)
    return {name: facts.split()[2] for facts, _, name in entries}


def _contents(repository: Path, blobs: Sequence[str]) -> list[bytes]:
    """Return what files hold, by their ids."""
    asked = "".join(f"{blob}\n" for blob in blobs).encode()
    done = try_git(repository, "cat-file", "--batch", stdin=asked)
    found, rest = [], done.stdout
    for blob in blobs:
        head, _, rest = rest.partition(b"\n")
        facts = head.split()
        if done.returncode or len(facts) != 3:
            raise ConfigError(f"{blob} could not be read in {repository}: {head.decode(errors='replace')}.")
        size = int(facts[2])
        found.append(rest[:size])
        rest = rest[size + 1 :]
    return found


def _new_runs(repository: Path, files: Mapping[str, Path], tip: str, branch: str) -> dict[str, str]:
    """Store the runs that the branch lacks; return their ids. Raises ConfigError where one differs."""
    theirs = _blobs(repository, tip)
    paths = "".join(f"{path.resolve()}\n" for path in files.values()).encode()
    stored = git(repository, "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=paths)
    ours = dict(zip(files, stored.splitlines(), strict=True))
    for name, blob in ours.items():
        if theirs.get(name, blob) != blob:
            raise ConfigError(
                f"{files[name]} is not what the branch {branch} holds as {name}; a run never changes.",
                next_step="delete the file and fetch the branch's: "
                f"hil ci history fetch --branch {branch} --history {files[name].parent.parent}",
            )
    return {name: blob for name, blob in ours.items() if name not in theirs}


def _joined_lines(repository: Path, files: Mapping[str, Path], tip: str, *, merge: bool) -> dict[str, str]:
    """Store the files, with the lines that the branch's have beyond them where ``merge``."""
    theirs = _blobs(repository, tip)
    joined = {}
    for name, path in files.items():
        content = path.read_bytes()
        if merge and name in theirs:
            content = _union(_contents(repository, [theirs[name]])[0], content)
        joined[name] = git(repository, "hash-object", "-w", "--stdin", stdin=content)
    return joined


def _commit(repository: Path, blobs: Mapping[str, str], message: str, tip: str) -> str:
    """Put files into the tip's tree and commit it; return "" where it has them already."""
    with tempfile.TemporaryDirectory(prefix="hil-index-") as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        git(repository, "read-tree", *([tip] if tip else ["--empty"]), env=index)
        entries = "".join(f"100644 {blob}\t{name}\n" for name, blob in blobs.items()).encode()
        git(repository, "update-index", "--add", "--index-info", stdin=entries, env=index)
        tree = git(repository, "write-tree", env=index)
    if tip and tree == git(repository, "rev-parse", f"{tip}^{{tree}}"):
        return ""
    parent = ("-p", tip) if tip else ()
    return git(repository, "commit-tree", tree, *parent, "-m", message, env=_IDENTITY)


def _union(theirs: bytes, ours: bytes) -> bytes:
    known = set(theirs.splitlines())
    lines = [*theirs.splitlines(), *(line for line in ours.splitlines() if line not in known)]
    return b"".join(line + b"\n" for line in lines)


LEG = "night-"  # what the names of legs begin with whose runs enter the history


def references_tonight(thresholds: Path) -> tuple[str, ...]:
    """Return the commits to measure beside the head. Raises ConfigError where the file of them is wrong."""
    night = tonight(datetime.datetime.now(tz=datetime.UTC))
    return tuple(reference.commit for reference in load_references(thresholds / FOLDER).of(night))


def add_runs(legs: Path, history: Path) -> Iterator[str]:
    """Append to a history what the legs of a night left below ``legs``; say what became of each.

    Raises RigError where the disk does not take it.
    """
    for leg in sorted(legs.glob(f"{LEG}*")):
        runs = RunDirectory.list(leg)
        if not runs:
            yield f"{leg.name}: no run"
        for run in runs:
            try:
                added = add_run(read_run(run.path), history)
                yield f"{leg.name}: {added.values} boot values in {added.path}"
            except ConfigError as error:
                yield f"{leg.name}: left out: {error}"
