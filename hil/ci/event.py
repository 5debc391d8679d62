# SPDX-License-Identifier: Apache-2.0
"""What GitHub says has happened: which commit is to be measured, against which, and who asks for it.

What a change touches, so that nothing is measured in vain and nothing is left out.

Which chips the workflows build for, and for which of them a rack is registered.

A file of the repository and not a repository variable, because GitHub does not pass variables to the
workflows of pull requests from forks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from hil.base.errors import ConfigError
from hil.base.git import git, try_git
from hil.base.yamlvalue import did_you_mean
from hil.boards.firmware.build import HOST_TARGET, IMAGE_TARGETS, VIRTUAL_TARGETS
from hil.boards.firmware.ruler import is_ruler
from hil.boards.rack import load_rack
from hil.store.codec import build, decode

DEFAULT_BRANCHES = ("origin/HEAD", "origin/main", "main")
DEPENDABOT = "dependabot[bot]"


@dataclass(frozen=True)
class CiEvent:
    """One occasion to measure; ``base_tip`` is the branch to compare with, empty where there is none.

    ``fork`` says that the commit comes from somebody who may not use a rack unasked: from another repository,
    or from Dependabot, whose commit is what strangers released.
    """

    name: str
    trigger: str
    head: str
    base_tip: str = ""
    repository: str = ""
    pull_request: int | None = None
    fork: bool = False


def read_event(environment: Mapping[str, str], repository: Path, *, base: str = "") -> CiEvent:
    """Return the event of this workflow run; outside of one, HEAD against ``base`` or the default branch.

    Raises:
        ConfigError: an event that says too little, or a revision that git does not know.
    """
    name = environment.get("GITHUB_EVENT_NAME", "")
    if not name:
        return _local(repository, base)
    owner = environment.get("GITHUB_REPOSITORY", "")
    if name == "pull_request":
        return _pull_request(_part(_payload(environment), name), owner, environment.get("GITHUB_ACTOR", ""))
    if name == "merge_group":
        group = _part(_payload(environment), name)
        return CiEvent(name, "pr", _text(group, "head_sha"), _text(group, "base_sha"), owner)
    head = environment.get("GITHUB_SHA") or git(repository, "rev-parse", "HEAD")
    return CiEvent(name, "nightly", head, repository=owner)


def _local(repository: Path, base: str) -> CiEvent:
    tip = _commit(repository, base) if base else _default_branch(repository)
    return CiEvent("local", "local", _commit(repository, "HEAD"), tip)


def _commit(repository: Path, revision: str) -> str:
    return git(repository, "rev-parse", "--verify", f"{revision}^{{commit}}")


def _default_branch(repository: Path) -> str:
    for branch in DEFAULT_BRANCHES:
        found = try_git(repository, "rev-parse", "--verify", "--quiet", f"{branch}^{{commit}}")
        if found.returncode == 0:
            return found.stdout.decode().strip()
    return ""


def _pull_request(part: Mapping[str, Any], owner: str, actor: str) -> CiEvent:
    head, base = _part(part, "head"), _part(part, "base")
    origin = head.get("repo") or {}  # null where the fork has been deleted since
    own = _text(_part(base, "repo"), "full_name")
    author = (part.get("user") or {}).get("login")
    return CiEvent(
        "pull_request",
        "pr",
        _text(head, "sha"),
        _text(base, "sha"),
        repository=owner or own,
        pull_request=int(part["number"]) if "number" in part else None,
        fork=origin.get("full_name") != own or DEPENDABOT in (actor, author),
    )


def _payload(environment: Mapping[str, str]) -> Mapping[str, Any]:
    path = environment.get("GITHUB_EVENT_PATH", "")
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(
            f"the event's payload in {path or 'no file'} (GITHUB_EVENT_PATH) cannot be read: {said}.",
            next_step=_OTHER_EVENT,
        ) from error
    return content if isinstance(content, dict) else {}


def _part(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = parent.get(key)
    if not isinstance(part, dict):
        raise ConfigError(f"the event's payload holds no object {key!r}.", next_step=_OTHER_EVENT)
    return part


def _text(parent: Mapping[str, Any], key: str) -> str:
    value = parent.get(key)
    if not isinstance(value, str) or not value:
        raise ConfigError(f"the event's payload holds no {key!r}.", next_step=_OTHER_EVENT)
    return value


_OTHER_EVENT = "check that GITHUB_EVENT_NAME and GITHUB_EVENT_PATH belong to one event."


Kind = Literal["documentation", "tests", "firmware", "ruler", "harness"]


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
    """Return what a path belongs to; an unknown path is harness, so that it is measured."""
    parts = PurePosixPath(path).parts
    if parts[0] == "docs" or (len(parts) == 1 and path.endswith(".md")) or path == "LICENSE":
        return "documentation"
    if is_ruler(path):
        return "ruler"
    if parts[0] in ("tests", "tools"):
        return "tests"
    return "firmware" if parts[0] == "firmware" else "harness"


def kinds_of(paths: Iterable[str]) -> tuple[Kind, ...]:
    """Return what the paths belong to, sorted, each once."""
    return tuple(sorted({kind_of(path) for path in paths}))


TARGETS_FILE = ".github/hil-targets.json"
VIRTUAL_RACK = "hil/racks/virtual.yaml"
_CHIPS = f"use some of: {', '.join(IMAGE_TARGETS)}."


@dataclass(frozen=True)
class Targets:
    """Chips, in the order in which they are written."""

    build: tuple[str, ...]
    racks: tuple[str, ...]


def read_targets(repository: Path, revision: str) -> Targets:
    """Return what the file says at a commit; nothing where it does not exist there. Raises ConfigError."""
    blob = f"{revision}:{TARGETS_FILE}"
    if try_git(repository, "cat-file", "-e", blob).returncode:
        git(repository, "cat-file", "-e", f"{revision}^{{commit}}")  # an unknown commit is an error
        return Targets((), ())
    where = f"{TARGETS_FILE} at {revision[:12]}"
    try:
        found = build(Targets, decode(git(repository, "show", blob).encode()))
    except ValueError as error:
        raise ConfigError(f"{where}: {error}.") from error
    return Targets(_chips(found.build, where), _chips(found.racks, where))


def virtual_targets(repository: Path) -> tuple[str, ...]:
    """Return the targets of the virtual rack's boards; all where the run will tell that its file is wrong."""
    try:
        return tuple(dict.fromkeys(board.target for board in load_rack(repository / VIRTUAL_RACK).boards))
    except ConfigError:
        return VIRTUAL_TARGETS


def _chips(targets: tuple[str, ...], where: str) -> tuple[str, ...]:
    for target in targets:
        if target == HOST_TARGET:
            raise ConfigError(
                f"{where}: the target {target} builds a host program, not an image to flash, so it "
                "cannot be bundled or flashed.",
                next_step=_CHIPS,
            )
        if target not in IMAGE_TARGETS:
            hint = did_you_mean(target, IMAGE_TARGETS)
            raise ConfigError(f"{where}: unknown target {target!r}{hint}", next_step=_CHIPS)
    return tuple(dict.fromkeys(targets))
