"""The history of nightly runs, kept on a branch of its own, so that it outlives artefacts and caches.

The branch shares no commit with the sources and holds JSON-lines files only. It is read and written without
touching the working tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hil.errors import ConfigError, RigError
from hil.git import git, try_git

BRANCH = "hil-history"
FETCHED = ".fetched-commit"
ATTEMPTS = 5
_AUTHOR = "github-actions[bot]"
_EMAIL = "41898282+github-actions[bot]@users.noreply.github.com"
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", _AUTHOR), ("EMAIL", _EMAIL))
}


def fetch(repository: Path, folder: Path, *, remote: str = "origin", branch: str = BRANCH) -> list[str]:
    """Write the branch's files into ``folder``; return their names, none where it does not exist yet.

    Raises:
        ConfigError: the remote does not answer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tip = _tip(repository, remote, branch)
    names = _names(repository, tip)
    for name in names:
        (folder / name).write_bytes(_content(repository, tip, name))
    (folder / FETCHED).write_text(tip, encoding="utf-8")
    return names


def push(
    repository: Path, folder: Path, message: str, *, remote: str = "origin", branch: str = BRANCH
) -> str:
    """Commit the ``*.jsonl`` of ``folder`` to the branch; return the commit, empty where nothing is new.

    Where somebody else was faster, their lines are kept and the ones that they lack are added.

    Raises:
        ConfigError: nothing to push, or the remote does not answer.
        RigError: the remote refused each attempt.
    """
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise ConfigError(f"{folder} holds no *.jsonl, so there is no history to push.")
    fetched = folder / FETCHED
    base = fetched.read_text(encoding="utf-8") if fetched.exists() else ""
    said = ""
    for _attempt in range(ATTEMPTS):
        tip = _tip(repository, remote, branch)
        commit = _commit(repository, files, message, tip, merge=tip != base)
        if not commit:
            return ""
        sent = try_git(repository, "push", remote, f"{commit}:refs/heads/{branch}")
        if sent.returncode == 0:
            fetched.write_text(commit, encoding="utf-8")
            return commit
        said = sent.stderr.decode(errors="replace").strip()
    raise RigError(
        f"pushing {branch} to {remote} was refused {ATTEMPTS} times: {said}",
        next_step="the job needs `contents: write`, and the branch must not be protected.",
    )


def _tip(repository: Path, remote: str, branch: str) -> str:
    """Fetch the branch; return its commit, empty where the remote does not have it."""
    if not git(repository, "ls-remote", remote, f"refs/heads/{branch}"):
        return ""
    git(repository, "fetch", "--no-tags", "--depth=1", remote, f"refs/heads/{branch}")
    return git(repository, "rev-parse", "FETCH_HEAD")


def _names(repository: Path, tip: str) -> list[str]:
    return git(repository, "ls-tree", "--name-only", tip).splitlines() if tip else []


def _content(repository: Path, tip: str, name: str) -> bytes:
    shown = try_git(repository, "cat-file", "blob", f"{tip}:{name}")
    if shown.returncode:
        raise ConfigError(f"{name} could not be read from commit {tip[:12]}.")
    return shown.stdout


def _commit(repository: Path, files: Sequence[Path], message: str, tip: str, *, merge: bool) -> str:
    blobs = {name: _content(repository, tip, name) for name in _names(repository, tip)}
    for path in files:
        ours = path.read_bytes()
        blobs[path.name] = _union(blobs.get(path.name, b""), ours) if merge else ours
    entries = [
        f"100644 blob {git(repository, 'hash-object', '-w', '--stdin', stdin=content)}\t{name}\n"
        for name, content in sorted(blobs.items())
    ]
    tree = git(repository, "mktree", stdin="".join(entries).encode())
    if tip and tree == git(repository, "rev-parse", f"{tip}^{{tree}}"):
        return ""
    parent = ("-p", tip) if tip else ()
    return git(repository, "commit-tree", tree, *parent, "-m", message, env=_IDENTITY)


def _union(theirs: bytes, ours: bytes) -> bytes:
    known = set(theirs.splitlines())
    lines = [*theirs.splitlines(), *(line for line in ours.splitlines() if line not in known)]
    return b"".join(line + b"\n" for line in lines)
