# SPDX-License-Identifier: Apache-2.0
"""git as a process, with its complaint in our sentence."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from hil.base.errors import ConfigError

DEADLINE_S = 120.0
_QUIET_DEADLINE_S = 10.0
_SHOWN = 12  # digits of a commit


def git(
    repository: Path, *arguments: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Return what git printed, without the last line end.

    Raises:
        ConfigError: git is missing, took longer than its deadline, or refused; with its own words.
    """
    done = try_git(repository, *arguments, stdin=stdin, env=env)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or f"status {done.returncode}"
        raise ConfigError(f"`git {' '.join(arguments)}` in {repository} failed: {said}")
    return done.stdout.decode(errors="replace").removesuffix("\n")


def head_of(repository: Path) -> str:
    """Return the commit that is checked out; "" outside of a repository, and before the first."""
    return ask_git(repository, "rev-parse", "--verify", "--quiet", "HEAD")


def count_between(repository: Path, good: str, bad: str) -> int:
    """Return how many commits lie in ``good..bad``; 0 where git does not know both."""
    said = ask_git(repository, "rev-list", "--count", f"{good}..{bad}", "--")
    return int(said) if said.isdecimal() else 0


def ask_git(repository: Path, *arguments: str) -> str:
    """Return the output of git, "" where it fails, is missing or is slow: no run depends on it."""
    try:
        done = try_git(repository, *arguments, deadline_s=_QUIET_DEADLINE_S)
    except ConfigError:
        return ""
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""


def bisect_command(good: str, bad: str, case: str) -> str:
    """Return the command that finds the first bad commit, with the script of docs/operate/bisect.md."""
    start = f"git bisect start --no-checkout --first-parent {bad[:_SHOWN]} {good[:_SHOWN]}"
    return f"{start} && git bisect run sh bisect.sh {shlex.quote(case)}"


def try_git(
    repository: Path,
    *arguments: str,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    deadline_s: float = DEADLINE_S,
) -> subprocess.CompletedProcess[bytes]:
    """Run git and return how it went. Raises ConfigError where it cannot start or does not end in time."""
    try:
        return subprocess.run(
            ["git", "-C", str(repository), *arguments],
            input=stdin if stdin is not None else b"",
            capture_output=True,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0", **(env or {})},
            timeout=deadline_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise ConfigError("git is not installed.", next_step="sudo apt-get install git") from error
    except OSError as error:
        raise ConfigError(
            f"git cannot be started: {error.strerror}.",
            next_step="check the program that `command -v git` names.",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise ConfigError(
            f"`git {arguments[0]}` in {repository} did not end within {deadline_s:g} s."
        ) from error
