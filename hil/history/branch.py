# SPDX-License-Identifier: Apache-2.0
"""What outlives artefacts and caches: the history, on a branch that shares no commit with the sources.

``hil-history`` holds what the folder holds: a file a run, ``<rack>/<run-id>.json`` (hil.history.files). A
file that is there never changes, so racks that push at once cannot come into conflict. Allure's own history
is a file of lines, to which each report adds a line. The branch is read and written without touching the
working tree; no file is ever deleted from it.

A checkout that keeps the job's token (`persist-credentials`) leaves it in .git/config, where all that is
installed later could read it. So the step that fetches or pushes is given it, and nothing else of its job.
"""

from __future__ import annotations

import base64
import io
import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hil.base.errors import ConfigError, RigError
from hil.base.git import git, try_git
from hil.history.files import check, paths_in, write
from hil.store.files import typed_path

BRANCH = "hil-history"
FETCHED = ".fetched-commit"
ATTEMPTS = 5  # at one state of the branch
_MOST_ATTEMPTS = 50
_LINES = ".jsonl"
_NAMES = re.compile(r"[\w-][\w.-]*(\.jsonl|/[\w-][\w.-]*\.json)")
_AUTHOR = "github-actions[bot]"
_EMAIL = "41898282+github-actions[bot]@users.noreply.github.com"
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", _AUTHOR), ("EMAIL", _EMAIL))
}


def fetch(
    repository: Path, folder: Path, *, remote: str = "origin", say: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Bring the branch's files into ``folder``; return their names, none where it does not exist yet.

    Runs and lines that are in the folder only stay there. A run that both have is what the branch holds then,
    and ``say`` is told where that differs.

    Raises:
        ConfigError: the remote does not answer.
        RigError: the disk does not take it.
    """
    tip = _tip(repository, remote)
    blobs = [item for item in _blobs(repository, tip).items() if _NAMES.fullmatch(item[0])]
    contents = _contents(repository, [blob for _, blob in blobs])
    for (name, _), content in zip(blobs, contents, strict=True):
        _bring(folder / name, content, say)
    write(folder / FETCHED, tip.encode())
    return sorted(name for name, _ in blobs)


def _bring(path: Path, content: bytes, say: Callable[[str], None]) -> None:
    there = path.read_bytes() if path.exists() else b""
    brought = _joined(there, content) if path.suffix == _LINES else content
    if brought == there:
        return
    if there and path.suffix != _LINES:
        say(f"{path} was another; it is what the branch holds now")
    write(path, brought)


def push(repository: Path, folder: Path, message: str, *, remote: str = "origin") -> str:
    """Commit the files of ``folder`` to the branch; return the commit, empty where nothing is new.

    Where somebody else was faster, their files and lines are kept and what they lack is added.

    Raises:
        ConfigError: nothing to push, a damaged file, a run that the branch holds with other content, or the
            remote does not answer.
        RigError: the remote refused each attempt.
    """
    files = _files(folder)
    if not files:
        raise ConfigError(
            f"{folder} holds no <rack>/<run-id>.json and no *{_LINES}, so there is no history to push."
        )
    check(paths_in(folder))  # what is damaged would stay on the branch for ever
    fetched = folder / FETCHED
    base = fetched.read_text(encoding="utf-8") if fetched.exists() else ""
    said, last, refused = "", "", 0
    for _attempt in range(_MOST_ATTEMPTS):
        tip = _tip(repository, remote)
        if tip != last:  # somebody else's push was taken, so this is no refusal but a race
            last, refused = tip, 0
        commit = _commit(repository, _stored(repository, files, tip, merge=tip != base), message, tip)
        if not commit:
            return ""
        sent = try_git(repository, "push", remote, f"{commit}:refs/heads/{BRANCH}")
        if sent.returncode == 0:
            fetched.write_text(commit, encoding="utf-8")
            return commit
        said = sent.stderr.decode(errors="replace").strip()
        refused += 1
        if refused == ATTEMPTS:
            break
    raise RigError(
        f"pushing {BRANCH} to {remote} was refused {refused} times: {said}",
        next_step="the job needs `contents: write`, and the branch must not be protected.",
    )


def _files(folder: Path) -> dict[str, Path]:
    """Return the runs and the lines of a folder by their names on the branch."""
    found = [*paths_in(folder), *sorted(folder.glob(f"*{_LINES}"))]
    names = {path.relative_to(folder).as_posix(): path for path in found}
    return {name: path for name, path in names.items() if _NAMES.fullmatch(name)}


def _tip(repository: Path, remote: str) -> str:
    """Fetch the branch; return its commit, empty where the remote does not have it."""
    if not git(repository, "ls-remote", remote, f"refs/heads/{BRANCH}"):
        return ""
    git(repository, "fetch", "--no-tags", "--depth=1", remote, f"refs/heads/{BRANCH}")
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
    found, stream = [], io.BytesIO(done.stdout)
    for blob in blobs:
        head = stream.readline()
        facts = head.split()
        if done.returncode or len(facts) != 3:
            raise ConfigError(
                f"{blob} could not be read in {repository}: {head.decode(errors='replace').strip()}."
            )
        found.append(stream.read(int(facts[2])))
        stream.read(1)  # a line's end
    return found


def _stored(repository: Path, files: Mapping[str, Path], tip: str, *, merge: bool) -> dict[str, str]:
    """Store the files, lines with those that the branch has beyond them where ``merge``; return their ids.

    Raises ConfigError where a run is not what the branch holds.
    """
    theirs = _blobs(repository, tip)
    paths = "".join(f"{path.resolve()}\n" for path in files.values()).encode()
    stored = git(repository, "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=paths)
    ours = dict(zip(files, stored.splitlines(), strict=True))
    for name in [name for name, blob in ours.items() if theirs.get(name, blob) != blob]:
        if not name.endswith(_LINES):
            raise ConfigError(
                f"{files[name]} differs from {name} in the branch {BRANCH}, where runs never change.",
                next_step="take the branch's: hil history fetch --history "
                f"{typed_path(files[name].parent.parent)}",
            )
        if merge:
            content = _joined(_contents(repository, [theirs[name]])[0], files[name].read_bytes())
            ours[name] = git(repository, "hash-object", "-w", "--stdin", stdin=content)
    return ours


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


def _joined(lines: bytes, newer: bytes) -> bytes:
    """Return a line a report, the newer one where both have it."""
    found = {_runs_of(line): line for line in (*lines.splitlines(), *newer.splitlines())}
    return b"".join(line + b"\n" for line in found.values())


def _runs_of(line: bytes) -> str:
    """Return the runs that a line is of; where it names none, the line itself stands for it."""
    try:
        return str(json.loads(line)["runs"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return repr(line)


def with_token(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which git sends GITHUB_TOKEN to GITHUB_SERVER_URL and to no other server.

    Nothing where either is not set: git asks as it does for a person. What GIT_CONFIG_COUNT counts stays.
    """
    token, server = environment.get("GITHUB_TOKEN", ""), environment.get("GITHUB_SERVER_URL", "")
    if not token or not server:
        return {}
    count = int(environment.get("GIT_CONFIG_COUNT") or 0)
    basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return {
        "GIT_CONFIG_COUNT": str(count + 1),
        f"GIT_CONFIG_KEY_{count}": f"http.{server.rstrip('/')}/.extraheader",
        f"GIT_CONFIG_VALUE_{count}": f"AUTHORIZATION: basic {basic}",
    }
