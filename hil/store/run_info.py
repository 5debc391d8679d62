# SPDX-License-Identifier: Apache-2.0
"""Who ran what, when, where and with which versions: the content of run.json."""

from __future__ import annotations

import datetime
import getpass
import platform
import re
import secrets
import socket
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import hil
from hil.base.errors import ConfigError
from hil.base.git import try_git
from hil.base.paths import BUILD_STAMP, CHECKOUT
from hil.base.project import product_here
from hil.base.schema import refuse_newer
from hil.base.untrusted import visible
from hil.model import PRODUCT_PATTERN, SCHEMA_VERSION
from hil.store.codec import decode

TRIGGERS = ("local", "pr", "nightly")  # what a run is for
PACKAGES = ("esptool", "pytest", "pytest-embedded", "pyserial", "numpy", "scipy", "ruamel.yaml")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_PULL_REQUEST = re.compile(r"refs/pull/(\d+)/")
_GIT_DEADLINE_S = 10.0
MOST_TITLE, MOST_AUTHOR = 200, 80  # characters of a commit's

# what readers rely on where it is there; a key that is missing is no error, for old runs lack some
_KINDS: Mapping[str, type] = {
    "run_id": str,
    "rack": str,
    "product": str,
    "suite": str,
    "trigger": str,
    "profile": str,
    "started_utc": str,
    "user": str,
    "host": str,
    "git": dict,
    "git.commit": str,
    "git.title": str,
    "git.author": str,
    "tool": dict,
    "ci": dict,
    "ci.url": str,
    "ci.report": str,
    "ci.head_sha": str,
    "versions": dict,
    "firmware": dict,
    "firmware.*": dict,
    "boards": list,
    "boards.*": dict,
    "plan": dict,
    "plan.*": dict,
    "compared": dict,
    "compared.unchanged": bool,
    "compared.gate": int,
    "standing": dict,
    "standing.state": str,
    "quarantined": list,
    "quarantined.*": dict,
    "reporting": dict,
    "reporting.warnings": list,
    "reporting.changes": list,
}
_KIND_NAMES: Mapping[type, str] = {
    str: "a text",
    dict: "an object",
    list: "a list",
    bool: "true or false",
    int: "an integer",
}


def parse_info(path: Path, content: bytes) -> dict[str, Any]:
    """Return what a run.json holds. Raises ConfigError, which names ``path`` and the key."""
    try:
        info = decode(content)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}.") from error
    if not isinstance(info, dict):
        raise ConfigError(f"{path}: not a JSON object.")
    refuse_newer(info.get("schema"), SCHEMA_VERSION, str(path))
    if wrong := _what_is_wrong(info):
        raise ConfigError(f"{path}: {wrong}.", next_step="correct it; the run's records are not in there.")
    return info


def _what_is_wrong(info: Mapping[str, Any]) -> str:
    """Return which key of a run.json holds what no reader can use; "" where none does."""
    for key, kind in _KINDS.items():
        for value in _values(info, *key.split(".")):
            if not isinstance(value, kind):
                return f"{key} is {str(value)[:40]!r}, expected {_KIND_NAMES[kind]}"
    if not re.fullmatch(PRODUCT_PATTERN, product := info.get("product", "")):
        return f"product {product[:40]!r} is no name of a product (a-z, 0-9 and single -)"
    try:
        datetime.datetime.fromisoformat(info.get("started_utc", "2000-01-01"))
    except ValueError:
        return f"started_utc {info['started_utc']!r} is no date"
    return ""


def _values(info: Mapping[str, Any], key: str, inner: str = "") -> list[Any]:
    """Return what ``key`` holds, or its key ``inner``; all that it holds for "*"."""
    if key not in info:
        return []
    value = info[key]
    if inner == "*":
        return list(value.values() if isinstance(value, dict) else value)
    return [value] if not inner else [value[inner]] if inner in value else []


def planned_boots(info: Mapping[str, Any]) -> dict[tuple[str, str], int]:
    """Return in how many boots each (board, case id) was to be measured; nothing of old runs."""
    plan: Mapping[str, Mapping[str, int]] = info.get("plan", {})
    return {(board, case_id): boots for board, cases in plan.items() for case_id, boots in cases.items()}


def is_unchanged(info: Mapping[str, Any]) -> bool:
    """Say whether a run compared its firmware with itself, to see how the gate judges what nobody changed."""
    return bool(info.get("compared", {}).get("unchanged", False))


def new_run_id(suite: str) -> str:
    """Return a name that sorts by time: ``20261120T221257Z-quick-3fa9``."""
    moment = datetime.datetime.now(tz=datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    word = _NOT_IN_NAMES.sub("-", suite).strip("-")[:24] or "run"
    return f"{moment}-{word}-{secrets.token_hex(2)}"


def describe_run(
    *, run_id: str, rack: str, suite: str, argv: Sequence[str], repository: Path, **extra: object
) -> dict[str, Any]:
    """Return run.json's content at the start of a run; ``extra`` adds keys of the caller's.

    Raises ConfigError where hil.toml is wrong.
    """
    product = product_here()
    return {
        "schema": SCHEMA_VERSION,
        "run_id": run_id,
        "rack": rack,
        **({"product": product} if product else {}),
        "suite": suite,
        "started_utc": utc_now(),
        "argv": list(argv),
        "user": _user(),
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "git": {**git_state(repository), **commit_words(repository, "HEAD")},
        "tool": tool_state(),
        "versions": _versions(),
        **extra,
    }


def utc_now() -> str:
    """Return the time as ``2026-11-20T22:12:57Z``."""
    return datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def measured_commit(info: Mapping[str, Any]) -> str:
    """Return the full commit that a run measured, of a pull request its head; "" where nothing tells."""
    return str(info.get("ci", {}).get("head_sha") or info.get("git", {}).get("commit") or "")


def ci_facts(environment: Mapping[str, str]) -> dict[str, object]:
    """Return where a GitHub Actions run is to be found and what it compares; ``{}`` outside of one.

    The variables are GitHub's own; HIL_HEAD_SHA and HIL_BASE_SHA come from the workflow, because GITHUB_SHA
    is the merge commit in a pull request, as does HIL_REPORT_URL, where the nights' report is published.
    """
    if environment.get("GITHUB_ACTIONS") != "true":
        return {}
    server, repository = environment.get("GITHUB_SERVER_URL", ""), environment.get("GITHUB_REPOSITORY", "")
    number = _PULL_REQUEST.match(environment.get("GITHUB_REF", ""))
    facts: dict[str, object] = {
        "repository": repository,
        "url": f"{server}/{repository}/actions/runs/{environment.get('GITHUB_RUN_ID', '')}",
        "report": environment.get("HIL_REPORT_URL"),
        "pull_request": int(number[1]) if number else None,
        "head_sha": environment.get("HIL_HEAD_SHA") or environment.get("GITHUB_SHA"),
        "base_sha": environment.get("HIL_BASE_SHA"),
    }
    return {key: value for key, value in facts.items() if value}


def git_state(repository: Path) -> Mapping[str, Any]:
    """Return ``commit`` ("" outside a repository, or before the first commit) and whether it is ``dirty``."""
    commit = _git(repository, "rev-parse", "--verify", "--quiet", "HEAD")
    changes = _git(repository, "status", "--porcelain", "--untracked-files=normal")
    return {"commit": commit, "dirty": bool(changes)}


def commit_words(repository: Path, commit: str) -> dict[str, str]:
    """Return ``title`` and ``author`` of a commit, each in one line; nothing where git does not know it."""
    said = _git(repository, "show", "--no-patch", "--format=%s%x00%an", commit, "--")
    title, separator, author = said.partition("\0")
    if not separator:
        return {}
    return {"title": visible(title, MOST_TITLE), "author": visible(author, MOST_AUTHOR)}


def tool_state() -> Mapping[str, Any]:
    """Return the tool's version, and ``commit`` and ``dirty`` of its sources; "" where nobody noted it."""
    if CHECKOUT:
        return {"version": hil.__version__, **git_state(CHECKOUT)}
    try:
        stamp = decode(BUILD_STAMP.read_bytes())
    except (OSError, ValueError):
        stamp = {}
    commit, dirty = str(stamp.get("commit", "")), bool(stamp.get("dirty", False))
    return {"version": hil.__version__, "commit": commit, "dirty": dirty}


def _git(repository: Path, *arguments: str) -> str:
    """Return what git printed; "" where it refused, is missing or is slow: a run does not depend on it."""
    try:
        done = try_git(repository, *arguments, deadline_s=_GIT_DEADLINE_S)
    except ConfigError:
        return ""
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _versions() -> dict[str, str]:
    found = {"hil": hil.__version__, "python": sys.version.split()[0]}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
