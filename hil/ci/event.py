"""What GitHub says has happened: which commit is to be measured, against which, and who asks for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError
from hil.base.git import git, try_git

DEFAULT_BRANCHES = ("origin/HEAD", "origin/main", "main")


@dataclass(frozen=True)
class Event:
    """One occasion to measure; ``base_tip`` is the branch to compare with, empty where there is none.

    ``fork`` says that the commit comes from another repository, whose authors may not use a rack unasked.
    """

    name: str
    trigger: str
    head: str
    base_tip: str = ""
    repository: str = ""
    pull_request: int | None = None
    fork: bool = False


def read_event(environment: Mapping[str, str], repository: Path, *, base: str = "") -> Event:
    """Return the event of this workflow run; outside of one, HEAD against ``base`` or the default branch.

    Raises:
        ConfigError: an event that says too little, or a revision that git does not know.
    """
    name = environment.get("GITHUB_EVENT_NAME", "")
    if not name:
        return _local(repository, base)
    owner = environment.get("GITHUB_REPOSITORY", "")
    if name == "pull_request":
        return _pull_request(_part(_payload(environment), name), owner)
    if name == "merge_group":
        group = _part(_payload(environment), name)
        return Event(name, "pr", _text(group, "head_sha"), _text(group, "base_sha"), owner)
    head = environment.get("GITHUB_SHA") or git(repository, "rev-parse", "HEAD")
    return Event(name, "nightly", head, repository=owner)


def _local(repository: Path, base: str) -> Event:
    tip = _commit(repository, base) if base else _default_branch(repository)
    return Event("local", "local", _commit(repository, "HEAD"), tip)


def _commit(repository: Path, revision: str) -> str:
    return git(repository, "rev-parse", "--verify", f"{revision}^{{commit}}")


def _default_branch(repository: Path) -> str:
    for branch in DEFAULT_BRANCHES:
        found = try_git(repository, "rev-parse", "--verify", "--quiet", f"{branch}^{{commit}}")
        if found.returncode == 0:
            return found.stdout.decode().strip()
    return ""


def _pull_request(part: Mapping[str, Any], owner: str) -> Event:
    head, base = _part(part, "head"), _part(part, "base")
    origin = head.get("repo") or {}  # null where the fork has been deleted since
    own = _text(_part(base, "repo"), "full_name")
    return Event(
        "pull_request",
        "pr",
        _text(head, "sha"),
        _text(base, "sha"),
        repository=owner or own,
        pull_request=int(part["number"]) if "number" in part else None,
        fork=origin.get("full_name") != own,
    )


def _payload(environment: Mapping[str, str]) -> Mapping[str, Any]:
    path = environment.get("GITHUB_EVENT_PATH", "")
    if not path:
        raise ConfigError(
            "GITHUB_EVENT_NAME is set and GITHUB_EVENT_PATH is not, so the event's payload cannot be read.",
            next_step=f"{_OTHER_EVENT} By hand, set neither.",
        )
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(
            f"the event's payload in {path} (GITHUB_EVENT_PATH) cannot be read: {said}.",
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
