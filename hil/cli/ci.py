# SPDX-License-Identifier: Apache-2.0
"""``hil ci``: the steps of the GitHub workflows, as commands that a person can run too."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

import click

from hil.base.errors import ConfigError, ExitCode, RigError
from hil.base.untrusted import markdown, terminal, terminal_page
from hil.ci import artefact, comment_page, legs, summary
from hil.ci import history as history_branch
from hil.ci.comment import comment
from hil.ci.event import read_event
from hil.ci.github import DEFAULT_API, GitHub
from hil.ci.history import BRANCH, add_runs
from hil.ci.legs import narrow, read_comparisons
from hil.ci.plan import CiPlan, plan_event, read_plan, write_plan
from hil.ci.summary import CiVerdict, conclude
from hil.cli.options import DEFAULT_OUT, history_option, out_option


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
def comment_command(
    run_id: int | None, repository: str, folder: Path | None, head: str, *, dry_run: bool
) -> None:
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


FOLDER = click.Path(path_type=Path, file_okay=False)
MOST_NAMES = 5

remote_option = click.option("--remote", default="origin", show_default=True, help="Of this repository.")


@click.group("history")
def history_command() -> None:
    """The branch hil-history: boot values, a file a run, and the lines that reports need of nights."""


@history_command.command("fetch")
@history_option
@remote_option
def fetch_history(history_folder: Path, remote: str) -> None:
    """Bring the branch's runs and lines into the folder, which need not exist yet; what is there stays."""
    names = history_branch.fetch(Path.cwd(), history_folder, remote=remote)
    which = ", ".join(names) if len(names) <= MOST_NAMES else f"{len(names)} files"
    click.echo(f"{BRANCH}: {f'{which} in {history_folder}' if names else 'it does not exist yet'}")


@history_command.command("push")
@history_option
@remote_option
@click.option("--message", default="Append a run", show_default=True)
def push_history(history_folder: Path, remote: str, message: str) -> None:
    """Commit the folder's files to the branch, beside what others have pushed meanwhile."""
    commit = history_branch.push(Path.cwd(), history_folder, message, remote=remote)
    click.echo(f"{BRANCH}: {f'now at {commit[:12]}' if commit else 'nothing new'}")


DEFAULT_PLAN = DEFAULT_OUT / "ci" / "plan.json"
DEFAULT_LEGS = DEFAULT_OUT / "ci" / "legs"


plan_option = click.option(
    "--plan",
    "plan_path",
    type=click.Path(path_type=Path),
    default=DEFAULT_PLAN,
    help="What `hil ci plan` wrote. [default: out/ci/plan.json]",
)
legs_option = click.option(
    "--legs",
    "legs_path",
    type=FOLDER,
    default=DEFAULT_LEGS,
    help="Folder with one folder a leg. [default: out/ci/legs]",
)


@click.group("ci")
def command() -> None:
    """Steps of the GitHub workflows; docs/operate/ci.md shows the whole.

    GitHub's variables (GITHUB_EVENT_NAME, GITHUB_EVENT_PATH, GITHUB_OUTPUT, GITHUB_STEP_SUMMARY, …) are
    used where they are set.
    """


@command.command("plan")
@click.option("--suite", default="", envvar="HIL_SUITE", show_envvar=True, help="Instead of each leg's own.")
@click.option("--base", default="", metavar="REV", help="Compare with it.  [default: the event's, or main]")
@plan_option
def make_plan(suite: str, base: str, plan_path: Path) -> None:
    """Decide what to build and to measure, and why some of it can be left out.

    Outside of GitHub it plans what a pull request of HEAD would do.
    """
    event = read_event(os.environ, Path.cwd(), base=base)
    plan = plan_event(Path.cwd(), event, suite=suite)
    write_plan(plan, plan_path)
    _say("".join(f"{line}\n" for line in _plan_lines(plan)))
    _write_outputs(plan.outputs())


@command.command("narrow")
@plan_option
@click.option(
    "--comparisons", type=FOLDER, required=True, help="Folder of what `hil firmware compare --json` printed."
)
@legs_option
def narrow_plan(plan_path: Path, comparisons: Path, legs_path: Path) -> None:
    """After the build: leave out racks whose image is that of the merge base."""
    plan = read_plan(plan_path)
    racks = narrow(plan, read_comparisons(comparisons), legs_path)
    for target in plan.racks:
        click.echo(f"rack-{target}: {'measure' if target in racks else 'skip, the image is the same'}")
    _write_outputs({"racks": json.dumps(racks)})


@command.command("collect")
@click.argument("leg")
@out_option
@legs_option
def collect_leg(leg: str, out: Path, legs_path: Path) -> None:
    """Put the newest run where LEG's artefact is made from, in place of an earlier one; show its summary."""
    folder = legs.collect(out, leg, legs_path)
    click.echo(str(folder))
    path = folder / "summary.md"
    if path.is_file():
        _summarise(path.read_text(encoding="utf-8"), whole=f"summary.md of the artefact leg-{leg}")


@command.command("verdict")
@plan_option
@legs_option
@click.option(
    "--jobs",
    default="",
    envvar="HIL_JOBS",
    show_envvar=True,
    metavar="JSON",
    help="GitHub's `needs` context: how the jobs before have ended. There it must be given.",
)
@click.option("--keep", type=FOLDER, metavar="DIR", help="Copy there what `hil ci comment` is made of.")
def judge_legs(plan_path: Path, legs_path: Path, jobs: str, keep: Path | None) -> int:
    """Say one verdict on all legs; its exit code is the worst of theirs.

    A leg without a verdict and without a recorded reason to skip it fails.
    """
    job_results = _job_results(jobs)
    try:
        plan = read_plan(plan_path)
    except ConfigError as error:
        _summarise(f"# NO VERDICT: there is no plan\n\n{markdown(error)}\n", whole="the log")
        _say(f"# NO VERDICT: there is no plan\n\n{error}\n")
        return int(ExitCode.RIG)
    if keep:
        _say("".join(f"warning: {line}\n" for line in artefact.keep(plan_path, legs_path, keep)))
    _check_jobs(plan, job_results)
    verdict = conclude(plan, legs_path, job_results)
    _say(summary.render(plan, verdict, os.environ))
    if os.environ.get("GITHUB_STEP_SUMMARY"):
        _summarise(_page(plan, verdict, legs_path), whole="the artefacts leg-…")
    return int(verdict.exit_code)


def _page(plan: CiPlan, verdict: CiVerdict, legs_path: Path) -> str:
    """Return what the comment shows, at greater length; the plain summary where that cannot be written."""
    source = comment_page.source_of(os.environ)
    try:
        return comment_page.render(comment_page.facts_of(plan, verdict, legs_path, source), "summary")
    except (RigError, OSError) as error:
        _say(f"warning: the job summary is a plain one: {error}\n")
        return summary.render(plan, verdict, os.environ, safe=True)


command.add_command(comment_command)
command.add_command(history_command)


@command.command("nights")
@legs_option
@history_option
def add_nights(legs_path: Path, history_folder: Path) -> None:
    """Append to the history what the legs night-… measured; name those that left nothing to append."""
    _say("".join(f"{line}\n" for line in add_runs(legs_path, history_folder)))


def _plan_lines(plan: CiPlan) -> list[str]:
    versus = f" against {plan.base[:12]}" if plan.base else ""
    changes = f" ({', '.join(plan.changes)} changed)" if plan.changes else ""
    whose = ", from a fork" if plan.fork else ""
    lines = [f"{plan.event}{whose}: {plan.head[:12]}{versus}{changes}"]
    images = [image for target in plan.build for image in plan.images(target)]
    lines.append(f"build: {', '.join(images) or 'nothing'}")
    lines += [
        f"{leg.name}: {f'skip, {leg.skip}' if leg.skip else f'measure suite {leg.suite}'}"
        for leg in plan.legs
    ]
    return lines


def _write_outputs(outputs: dict[str, str]) -> None:
    path = os.environ.get("GITHUB_OUTPUT")
    if path:
        with Path(path).open("a", encoding="utf-8") as stream:
            # a value with a line end could set another output
            stream.writelines(f"{key}={' '.join(value.splitlines())}\n" for key, value in outputs.items())


def _summarise(page: str, *, whole: str) -> None:
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        summary.append(Path(path), page, whole=whole)


def _say(text: str) -> None:
    """Print what others wrote: file names, what a leg left. No terminal obeys it, and GitHub must not either.

    The runner looks for commands in each line, whatever stands before them, and a carriage return ends a
    line too; so it is told not to, until it reads a word that the text cannot know.
    """
    text = terminal_page(text)
    if not _on_github():
        click.echo(text, nl=False)
        return
    if not text:
        return
    token = secrets.token_hex(16)
    click.echo(f"::stop-commands::{token}\n{text}\n::{token}::")


def _on_github() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"


def _check_jobs(plan: CiPlan, job_results: Mapping[str, str]) -> None:
    """On GitHub a verdict must know how each leg's job ended. Raises ConfigError."""
    unknown = sorted({leg.job for leg in plan.legs} - set(job_results))
    if _on_github() and unknown:
        raise ConfigError(
            f"HIL_JOBS says nothing of how {', '.join(unknown)} ended, so there is no verdict.",
            next_step="in the workflow, list every job in `needs` and set HIL_JOBS: ${{ toJSON(needs) }}.",
        )


def _job_results(text: str) -> dict[str, str]:
    if not text:
        return {}
    try:
        jobs = json.loads(text)
        return {job: str(facts["result"]) for job, facts in jobs.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"--jobs is not GitHub's needs context: {error!r}.") from error
