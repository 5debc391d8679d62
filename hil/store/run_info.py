"""Who ran what, when, where and with which versions: the content of run.json."""

from __future__ import annotations

import datetime
import getpass
import platform
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import hil
from hil.model import SCHEMA_VERSION

PACKAGES = ("esptool", "pytest", "pytest-embedded", "pyserial", "numpy", "scipy", "ruamel.yaml")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_GIT_DEADLINE_S = 10


def new_run_id(suite: str, *, now: datetime.datetime | None = None) -> str:
    """Return a name that sorts by time: ``20261120T221257Z-quick-3fa9``."""
    moment = (now or datetime.datetime.now(tz=datetime.UTC)).strftime("%Y%m%dT%H%M%SZ")
    word = _NOT_IN_NAMES.sub("-", suite).strip("-")[:24] or "run"
    return f"{moment}-{word}-{secrets.token_hex(2)}"


def describe_run(
    *, run_id: str, rack: str, suite: str, argv: Sequence[str], repository: Path, **extra: object
) -> dict[str, Any]:
    """Return run.json's content at the start of a run; ``extra`` adds keys of the caller's."""
    return {
        "schema": SCHEMA_VERSION,
        "run_id": run_id,
        "rack": rack,
        "suite": suite,
        "started_utc": utc_now(),
        "argv": list(argv),
        "user": _user(),
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "git": git_state(repository),
        "versions": _versions(),
        **extra,
    }


def utc_now() -> str:
    """Return the time as ``2026-11-20T22:12:57Z``."""
    return datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def git_state(repository: Path) -> Mapping[str, Any]:
    """Return ``commit`` ("" outside a repository, or before the first commit) and whether it is ``dirty``."""
    commit = _git(repository, "rev-parse", "--verify", "--quiet", "HEAD")
    changes = _git(repository, "status", "--porcelain", "--untracked-files=normal")
    return {"commit": commit, "dirty": bool(changes)}


def _git(repository: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *arguments],
            capture_output=True,
            text=True,
            timeout=_GIT_DEADLINE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


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
