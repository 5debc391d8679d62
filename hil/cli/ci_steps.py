# SPDX-License-Identifier: Apache-2.0
"""What the commands of a GitHub step have in common: outputs, the job's summary, text of others, the API."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import click

from hil.base.errors import ConfigError
from hil.base.untrusted import terminal_page
from hil.ci import summary
from hil.ci.github import DEFAULT_API, GitHub
from hil.ci.racks import Job, jobs_of


def on_github() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"


def github_of_job(token: str) -> GitHub:
    """Return the API as this job's variables have it. Raises ConfigError where nothing names a repository."""
    api = os.environ.get("GITHUB_API_URL") or DEFAULT_API
    return GitHub(os.environ.get("GITHUB_REPOSITORY", ""), token, api)


def jobs_of_this_run() -> tuple[Job, ...]:
    """Return the jobs of the workflow run that this one is of. Raises ConfigError by hand; RigError."""
    token = os.environ.get("GITHUB_TOKEN", "")
    run_id, attempt = (os.environ.get(name, "") for name in ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"))
    if not (token and run_id.isdigit() and attempt.isdigit()):
        raise ConfigError(
            "GITHUB_TOKEN, GITHUB_RUN_ID and GITHUB_RUN_ATTEMPT do not name a workflow run.",
            next_step="run this command in a GitHub Actions job, with the permission actions: read.",
        )
    return jobs_of(github_of_job(token), int(run_id), int(attempt))


def write_outputs(outputs: dict[str, str]) -> None:
    path = os.environ.get("GITHUB_OUTPUT")
    if path:
        with Path(path).open("a", encoding="utf-8") as stream:
            # a value with a line end could set another output
            stream.writelines(f"{key}={' '.join(value.splitlines())}\n" for key, value in outputs.items())


def summarise(page: str, *, whole: str) -> None:
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        summary.append(Path(path), page, whole=whole)


def say(text: str) -> None:
    """Print what others wrote: file names, what a leg left. No terminal obeys it, and GitHub must not either.

    The runner looks for commands in each line, whatever stands before them, and a carriage return ends a
    line too; so it is told not to, until it reads a word that the text cannot know.
    """
    text = terminal_page(text)
    if not on_github():
        click.echo(text, nl=False)
        return
    if not text:
        return
    token = secrets.token_hex(16)
    click.echo(f"::stop-commands::{token}\n{text}\n::{token}::")
