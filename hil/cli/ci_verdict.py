# SPDX-License-Identifier: Apache-2.0
"""``hil ci verdict``, ``comment`` and ``sync-issues``: what a workflow run comes to, and who is told."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from hil.base.errors import ConfigError, ExitCode, HilError, RigError
from hil.base.untrusted import markdown, terminal
from hil.ci import artefact, comment_page, summary
from hil.ci.acceptance import find_acceptance
from hil.ci.comment import comment
from hil.ci.conclusion import CiVerdict, accept, conclude, conclude_by
from hil.ci.event_issues import sync
from hil.ci.limits import Counting
from hil.ci.plan import CiPlan, read_plan
from hil.ci.publish import describe_attempt
from hil.ci.racks import unanswered
from hil.cli.ci_steps import (
    github_of_job,
    jobs_of_this_run,
    on_github,
    say,
    summarise,
    write_outputs,
)
from hil.cli.options import FOLDER, ci_folder
from hil.store import ended

_MOST_BYTES = 64 * 1024 * 1024


@click.command("comment")
@click.option(
    "--run", "run_id", type=click.IntRange(min=1), help="Number of a run of pr.yml, in its address."
)
@click.option("--head", default="", metavar="SHA", help="The commit that the run must be of.")
def comment_command(run_id: int | None, head: str) -> None:
    """Comment on a pull request: what changed, by how much, and what was not run.

    The comment is written once and brought up to date; an older run never replaces a newer one. GITHUB_TOKEN
    gives access; GITHUB_REPOSITORY names the repository, GITHUB_API_URL another server than api.github.com.
    docs/operate/ci-verdict.md says what is trusted.

    Without --run, print the comment on what is in out/ci, or in the folder HIL_CI; GitHub gets nothing.
    """
    if run_id is None:
        click.echo(_page_of_folder(ci_folder()), nl=False)
        return
    token = os.environ.get("GITHUB_TOKEN", "")
    if not token:
        raise ConfigError("GITHUB_TOKEN is not set, so nothing can be written.", next_step="set it.")
    for line in comment(github_of_job(token), run_id, head=head):
        click.echo(terminal(line))


def _page_of_folder(folder: Path) -> str:
    plan, legs = read_plan(folder / artefact.PLAN), folder / artefact.LEGS
    verdict = conclude(plan, legs, {}, Counting())
    source = comment_page.source_of(os.environ, plan, Path.cwd())
    return comment_page.render(comment_page.facts_of(plan, verdict, legs, source), "comment")


@click.command("verdict")
@click.option(
    "--thresholds",
    type=FOLDER,
    help="The limits that count, beside those of the merge base: a path from the top of the checkout, of a "
    "project …/hil/thresholds. [default: those that each run keeps]",
)
def verdict_command(thresholds: Path | None) -> int:
    """Give one verdict on all legs and store it for the comment; exit with the worst leg's code.

    Each leg is judged again from its records, by the definitions of head and of merge base. A leg
    without a verdict and without a recorded reason to skip it fails, and so does one whose verdict says
    otherwise than its records, or that measured less than the plan asks for. Where GitHub says that a rack
    took no job within an hour, its leg is undecided. HIL_JOBS is GitHub's `needs` context:
    how the jobs before have ended. There it must be set.
    """
    plan_path, legs_path = ci_folder() / artefact.PLAN, ci_folder() / artefact.LEGS
    job_results = _job_results(os.environ.get("HIL_JOBS", ""))
    try:
        plan = read_plan(plan_path)
    except ConfigError as error:
        return _without_plan(plan_path, error)
    left_out = artefact.keep(plan_path, legs_path, ci_folder() / "verdict", thresholds)
    say("".join(f"warning: {line}\n" for line in left_out))
    _check_jobs(plan, job_results)
    verdict = conclude_by(thresholds, plan, legs_path, job_results, partial(_excuses_now, plan))
    if verdict.acceptable:
        verdict = _accepted(plan, verdict)
    attempt = os.environ.get("GITHUB_RUN_ATTEMPT", "")
    verdict = replace(verdict, attempts=describe_attempt(int(attempt) if attempt.isdigit() else 1))
    say(summary.render(plan, verdict, os.environ))
    if os.environ.get("GITHUB_STEP_SUMMARY"):
        summarise(_page(plan, verdict, legs_path), whole="the artefacts leg-…")
    write_outputs({"verdict": "fail" if verdict.exit_code else "pass"})
    return int(verdict.exit_code)


def _without_plan(path: Path, error: ConfigError) -> int:
    """Report that there is no plan, with the reason if the planning command left it; return the exit code."""
    code, heading, said = ExitCode.RIG, "NO VERDICT: there is no plan", str(error)
    with suppress(ConfigError):  # what is there is no word of ours
        if early := ended.read(path.parent / ended.ENDED):
            code, said = ExitCode(early.exit_code), early.words
            heading = f"{_NO_PLAN.get(early.owner, 'NO VERDICT:')} there is no plan"
    summarise(f"# {heading}\n\n{markdown(said, 2 * ended.MOST_CHARACTERS)}\n", whole="the log")
    say(f"# {heading}\n\n{said}\n")
    return int(code)


_NO_PLAN = {"configuration": "NOT MEASURED: CONFIGURATION –", "rig": "NO VERDICT: THE RIG FAILED –"}


def _accepted(plan: CiPlan, verdict: CiVerdict) -> CiVerdict:
    """Ask GitHub whether an owner takes what regressed on purpose; without an answer nobody does."""
    token, run_id = os.environ.get("GITHUB_TOKEN", ""), os.environ.get("GITHUB_RUN_ID", "")
    if not (token and run_id.isdigit() and plan.pull_request):
        return verdict
    try:
        found = find_acceptance(github_of_job(token), plan.pull_request, int(run_id), plan.head)
    except HilError as error:
        say(f"warning: nobody knows whether the regression is accepted: {error}\n")
        return verdict
    return accept(verdict, found) if found else verdict


def _page(plan: CiPlan, verdict: CiVerdict, legs_path: Path) -> str:
    """Return what the comment shows, at greater length; the plain summary where that cannot be written."""
    source = comment_page.source_of(os.environ, plan, Path.cwd())
    try:
        return comment_page.render(comment_page.facts_of(plan, verdict, legs_path, source), "summary")
    except (RigError, OSError) as error:
        say(f"warning: the job summary is a plain one: {error}\n")
        return summary.render(plan, verdict, os.environ, safe=True)


def _excuses_now(plan: CiPlan, lost: Collection[str]) -> dict[str, str]:
    """Return what GitHub says of legs that left nothing; nothing where it does not answer."""
    try:
        return unanswered(plan, lost, jobs_of_this_run)
    except HilError as error:
        say(f"warning: nobody knows whether racks took their jobs: {error}\n")
        return {}


def _check_jobs(plan: CiPlan, job_results: Mapping[str, str]) -> None:
    """On GitHub a verdict must know how each leg's job ended. Raises ConfigError."""
    unknown = sorted({leg.measured_by for leg in plan.legs if not leg.skip} - set(job_results))
    if on_github() and unknown:
        raise ConfigError(
            f"HIL_JOBS lacks the result of {', '.join(unknown)}, so there is no verdict.",
            next_step="in the workflow, list every job in `needs` and set HIL_JOBS: ${{ toJSON(needs) }}.",
        )


def _job_results(text: str) -> dict[str, str]:
    if not text:
        return {}
    try:
        jobs = json.loads(text)
        return {job: str(facts["result"]) for job, facts in jobs.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"HIL_JOBS is not GitHub's needs context: {error!r}.") from error


@click.command("sync-issues")
@click.argument("trend", type=click.Path(path_type=Path, dir_okay=False, exists=True))
def issues_command(trend: Path) -> None:
    """Open an issue for each new event of TREND, a report's trend/trend.json; close those that are over.

    GITHUB_TOKEN may write issues. Where GitHub refuses that, it is said, and nothing fails. HIL_REPORT_URL is
    where the report is deployed.
    """
    token = os.environ.get("GITHUB_TOKEN", "")
    if not token:
        raise ConfigError(
            "GITHUB_TOKEN is not set, so no issue can be opened.", next_step="set it, with Issues: write."
        )
    server = os.environ.get("GITHUB_SERVER_URL") or "https://github.com"
    found, report_url = _read_trend(trend), os.environ.get("HIL_REPORT_URL", "")
    try:
        done = sync(github_of_job(token), found, report_url, server)
    except HilError as error:
        done = [f"the issues of the nights' events are not up to date: {error}"]
    lines = done or ["no event is open, so no issue was opened"]
    say("".join(f"{line}\n" for line in lines))
    page = "".join(f"- {markdown(line)}\n" for line in lines)
    summarise(f"## Issues of events\n\n{page}", whole="the job's log")


def _read_trend(path: Path) -> object:
    if path.stat().st_size > _MOST_BYTES:
        raise ConfigError(f"{path.name} has more than {_MOST_BYTES} bytes.", next_step="report fewer nights.")
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path.name} is not JSON.", next_step="build the report again.") from error
