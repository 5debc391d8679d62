"""``hil ci comment``: the verdict of a workflow run, under its pull request."""

from __future__ import annotations

import os
from pathlib import Path

import click

from hil.base.errors import ConfigError
from hil.base.untrusted import terminal
from hil.ci import artefact, comment_page
from hil.ci.comment import comment
from hil.ci.github import DEFAULT_API, GitHub
from hil.ci.plan import read_plan
from hil.ci.summary import conclude


@click.command("comment")
@click.option(
    "--run", "run_id", type=click.IntRange(min=1), help="Number of a run of pr.yml, in its address."
)
@click.option(
    "--repository",
    default="",
    envvar="GITHUB_REPOSITORY",
    show_envvar=True,
    metavar="OWNER/NAME",
    help="Where it ran.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Instead of a run: plan.json and legs/ of this machine, such as out/ci. Needs --dry-run.",
)
@click.option("--head", default="", metavar="SHA", help="The commit that the run must be of.")
@click.option("--dry-run", is_flag=True, help="Print the Markdown; write nothing anywhere.")
def command(run_id: int | None, repository: str, folder: Path | None, head: str, *, dry_run: bool) -> None:
    """Say under a pull request what changed, by how much, and what was not run.

    The comment is written once and brought up to date; an older run never replaces a newer one. GITHUB_TOKEN
    gives access, GITHUB_API_URL another server than api.github.com. docs/operate/ci.md says what is trusted.
    """
    if (run_id is None) == (folder is None):
        raise ConfigError(
            "give either --run or --folder.", next_step="hil ci comment --folder out/ci --dry-run"
        )
    if folder is not None:
        if not dry_run:
            raise ConfigError("what is on this machine is not written to GitHub.", next_step="add --dry-run.")
        click.echo(_page_of_folder(folder), nl=False)
        return
    assert run_id is not None
    token = os.environ.get("GITHUB_TOKEN", "")
    if not token and not dry_run:
        raise ConfigError(
            "GITHUB_TOKEN is not set, so nothing can be written.", next_step="set it, or --dry-run."
        )
    github = GitHub(repository, token, os.environ.get("GITHUB_API_URL") or DEFAULT_API)
    for line in comment(github, run_id, head=head, dry_run=dry_run):
        click.echo(line if dry_run and "\n" in line else terminal(line), nl=not line.endswith("\n"))


def _page_of_folder(folder: Path) -> str:
    plan, legs = read_plan(folder / artefact.PLAN), folder / artefact.LEGS
    verdict = conclude(plan, legs, {})
    source = comment_page.source_of(os.environ)
    return comment_page.render(comment_page.facts_of(plan, verdict, legs, source), "comment")
