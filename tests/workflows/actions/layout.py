# SPDX-License-Identifier: Apache-2.0
"""What GitHub's actions leave on the disk, in the versions that .github/ pins: checkout and artefacts.

From their sources: actions/upload-artifact `search.ts`, actions/download-artifact `download-artifact.ts`,
actions/checkout `git-source-provider.ts` and `git-directory-helper.ts`, actions/deploy-pages `api-client.js`.
The stand-ins for act run it as a program, tests without act call it. An artefact is a folder of its name.

    layout.py upload|download|checkout|deployed     inputs by the environment
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

# of attempts before: artefacts stay, and the newest of a name is the one that is fetched
EARLIER = ".earlier"
ATTEMPTS = ".attempts"


class ActionError(Exception):
    """The action fails its step."""


def upload(
    store: Path,
    name: str,
    paths: str,
    *,
    workspace: Path,
    missing: str = "warn",
    hidden: bool = False,
    attempt: str = "1",
) -> None:
    """Keep files as an artefact: below their one search path, or what several have in common."""
    lines = [workspace / line for line in paths.split("\n") if line.strip()]
    searched = [_search_path(line) for line in lines]
    found = [file for line in lines for file in _found(line, hidden=hidden)]
    if not found:
        if missing == "error":
            raise ActionError(f"No files were found with the provided path: {paths}")
        return
    root = Path(os.path.commonpath(searched))
    if len(searched) == 1 and found == searched:
        root = found[0].parent
    _make_room(store, name, attempt)
    for file in found:
        to = store / name / file.relative_to(root)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, to)  # a zip has neither links nor modes


def _search_path(pattern: Path) -> Path:
    literal = pattern
    while any("*" in part for part in literal.parts):
        literal = literal.parent
    return Path(os.path.normpath(literal))


def _found(pattern: Path, *, hidden: bool) -> list[Path]:
    start = _search_path(pattern)
    matching = [start] if start == pattern else sorted(start.glob(str(pattern.relative_to(start))))
    return [file for path in matching for file in _files(Path(os.path.normpath(path)), hidden=hidden)]


def _files(path: Path, *, hidden: bool) -> Iterator[Path]:
    """Yield the files of a path, through links; folders without one leave nothing."""
    if path.name.startswith(".") and not hidden:
        return
    if path.is_file():
        yield path
    elif path.is_dir():
        for below in sorted(path.iterdir()):
            yield from _files(below, hidden=hidden)


def _make_room(store: Path, name: str, attempt: str) -> None:
    noted = store / ATTEMPTS / name
    if noted.exists():
        before = noted.read_text()
        if before == attempt:
            raise ActionError(f"an artifact with the name {name} already exists on the workflow run")
        (store / EARLIER / before).mkdir(parents=True, exist_ok=True)
        (store / name).rename(store / EARLIER / before / name)
    noted.parent.mkdir(parents=True, exist_ok=True)
    noted.write_text(attempt)


def download(store: Path, to: Path, *, name: str = "", pattern: str = "", merge: bool = False) -> None:
    """Fetch one by its name, or the newest of each: a single one goes into ``to`` itself, merged or not."""
    names = sorted(path.name for path in store.glob("[!.]*"))
    if name and name not in names:
        raise ActionError(f"Artifact not found for name: {name}")
    chosen = [name] if name else [one for one in names if fnmatch.fnmatchcase(one, pattern or "*")]
    for one in chosen:
        flat = name or merge or len(chosen) == 1
        _unzip(store / one, to if flat else to / one)


def _unzip(artefact: Path, to: Path) -> None:
    """Write its files, through whatever links lie below ``to``."""
    for file in filter(Path.is_file, artefact.rglob("*")):
        target = to / file.relative_to(artefact)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())


def deployed(store: Path, name: str) -> Path:
    """Return the artefact that Pages deploys, which must be the only one of its name in the workflow run."""
    if list((store / EARLIER).glob(f"*/{name}")):
        raise ActionError(f'Multiple artifacts named "{name}" were unexpectedly found for this workflow run.')
    return store / name


def checkout(origin: str, ref: str, to: Path, *, depth: str = "1") -> None:
    """Make ``to`` a checkout; what is there goes, but for the history of the same repository."""
    to.mkdir(parents=True, exist_ok=True)
    git = ["git", "-C", str(to)]
    if (to / ".git").is_dir() and _asked([*git, "config", "--get", "remote.origin.url"]) == origin:
        for words in ("checkout --quiet --detach", "clean -ffdxq", "reset --hard --quiet HEAD"):
            _run([*git, *words.split()])
    else:
        for path in to.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        _run([*git, "init", "--quiet"])
        _run([*git, "remote", "add", "origin", origin])
    if depth == "0":
        _run([*git, "fetch", "--quiet", "origin"])
    _run([*git, "fetch", "--quiet", *([f"--depth={depth}"] if depth != "0" else []), "origin", ref])
    _run([*git, "checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"])


def _asked(words: Sequence[str]) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60).stdout.strip()


def _run(words: Sequence[str]) -> None:
    subprocess.run(words, check=True, timeout=300)


def main() -> int:
    """Do what a stand-in asks for; its inputs are in the environment, under their own names."""
    inputs = ("NAME", "PATTERN", "FROM", "TO", "MISSING", "ORIGIN", "REF")
    given = {name: os.environ.get(name, "") for name in inputs}
    store = Path(os.environ["HIL_ACT_ARTIFACTS"]) if sys.argv[1] != "checkout" else Path()
    yes = {name: os.environ.get(name) == "true" for name in ("MERGE", "HIDDEN")}
    try:
        if sys.argv[1] == "upload":
            attempt = os.environ.get("GITHUB_RUN_ATTEMPT") or "1"
            more = {"missing": given["MISSING"] or "warn", "hidden": yes["HIDDEN"], "attempt": attempt}
            upload(store, given["NAME"], given["FROM"], workspace=Path.cwd(), **more)  # type: ignore[arg-type]
        elif sys.argv[1] == "download":
            chosen = {"name": given["NAME"], "pattern": given["PATTERN"]}
            download(store, Path(given["TO"]), **chosen, merge=yes["MERGE"])
        elif sys.argv[1] == "deployed":
            print(deployed(store, given["NAME"]))
        else:
            checkout(given["ORIGIN"], given["REF"], Path(given["TO"]), depth=os.environ["DEPTH"])
    except ActionError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
